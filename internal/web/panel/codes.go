package panel

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"
	"rsc.io/qr"

	"eidetic/internal/box/credentials"
)

// deviceCodes are the QR codes of a device's set-up.
const (
	codeOfPage = "page"
	codeOfWiFi = "wifi"
)

// startPage is where a device gets the certificate.
const startPage = "http://box.test/"

// codes registers the route of QR codes.
func (p deviceFeature) codes(e *echo.Echo, api huma.API) {
	text := &huma.Schema{Type: huma.TypeString}
	p.raw(e, api, &huma.Operation{
		OperationID: "get-device-code", Method: http.MethodGet, Path: "/api/v1/devices/{name}/code", Summary: "A QR code for the set-up of a device",
		Description: "of=page leads a device that is in the box's network to the page where it gets the certificate, of=wifi into the network of the " +
			"device's access point. That one holds the passphrase, and needs the scope run.",
		Tags: []string{tagDevices},
		Parameters: []*huma.Param{{Name: "name", In: "path", Required: true, Schema: text},
			{Name: "of", In: "query", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{codeOfPage, codeOfWiFi}, Default: codeOfPage}}},
		Responses: file("200", "image/png", "The picture"),
	}, func(c echo.Context) error {
		ctx, name := c.Request().Context(), deviceName(c.Param("name"))
		var found *Device
		for _, d := range p.Devices(ctx) {
			if d.Name == name {
				found = &d
			}
		}
		if found == nil {
			return echo.NewHTTPError(http.StatusNotFound, "there is no device "+clip(name))
		}
		said := startPage
		switch of := c.QueryParam("of"); {
		case of == "" || of == codeOfPage:
		case of != codeOfWiFi:
			return echo.NewHTTPError(http.StatusUnprocessableEntity, "of "+clip(of)+": write page or wifi")
		case !identityOf(ctx).Scope.Allows(credentials.Run):
			return echo.NewHTTPError(http.StatusForbidden, "the code holds the passphrase: it needs a token of the scope run")
		case found.WiFi == nil:
			return echo.NewHTTPError(http.StatusNotFound, "device "+clip(name)+" is not at an access point")
		default:
			said = found.WiFi.QR
		}
		code, err := qr.Encode(said, qr.M)
		if err != nil {
			return echo.NewHTTPError(http.StatusConflict, "the text is too long for a QR code")
		}
		c.Response().Header().Set("Cache-Control", "no-store")
		return c.Blob(http.StatusOK, "image/png", code.PNG())
	})
}
