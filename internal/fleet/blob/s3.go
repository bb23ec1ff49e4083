package blob

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"eidetic/internal/lab"
)

// S3Config names a bucket of an S3-compatible store, and who we are there.
type S3Config struct {
	Endpoint string // https://HOST[:PORT]; http:// only where the network is trusted
	Bucket   string // exists already
	Prefix   string // of all names in the bucket, such as "eidetic/"; everything below it is the fleet's
	Region   string // "" asks the store
	// CredentialsFile is in the format of ~/.aws/credentials. Without one, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
	// AWS_SESSION_TOKEN of the environment are taken.
	CredentialsFile string
	Profile         string // of the file: "default"
	CAFile          string // PEM of authorities that are trusted besides the system's
}

// S3 is a store in a bucket: PREFIX/DIGEST. What is sent is compared with the digest before its last byte leaves, and
// the store checks each request by its MD5, which all S3-compatible stores know (SHA-256 checksums of S3 need trailing
// headers, which many have not, and are of the parts, not of the whole, for blobs in several parts).
type S3 struct {
	client    *minio.Client
	transport *http.Transport
	bucket    string
	prefix    string
}

// partBytes is the size of the parts of a large blob, and up to which one is sent at once. One is in memory for each
// Put.
const partBytes = 16 << 20

// OpenS3 connects to a bucket and tries whether it can be listed. A store that is away is a [lab.AwayError].
func OpenS3(ctx context.Context, c S3Config) (*S3, error) {
	endpoint, err := url.Parse(c.Endpoint)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "https" && endpoint.Scheme != "http" || strings.Trim(endpoint.Path, "/") != "" {
		return nil, fmt.Errorf("S3 endpoint: %q is not https://HOST or https://HOST:PORT", c.Endpoint)
	}
	keys := credentials.NewEnvAWS()
	where := "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment"
	if c.CredentialsFile != "" {
		keys = credentials.NewFileAWSCredentials(c.CredentialsFile, c.Profile)
		where = "aws_access_key_id and aws_secret_access_key in " + c.CredentialsFile
	}
	if v, err := keys.GetWithContext(nil); err != nil || v.AccessKeyID == "" || v.SecretAccessKey == "" {
		return nil, errors.Join(fmt.Errorf("S3 credentials: set %s", where), err)
	}
	transport, err := minio.DefaultTransport(endpoint.Scheme == "https")
	if err != nil {
		return nil, fmt.Errorf("S3: %w", err)
	}
	if c.CAFile != "" {
		if err := trust(transport, c.CAFile); err != nil {
			return nil, err
		}
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds: keys, Secure: endpoint.Scheme == "https", Transport: transport, Region: c.Region, MaxRetries: 5,
	})
	if err != nil {
		return nil, fmt.Errorf("S3: %w", err)
	}
	s := &S3{client: client, transport: transport, bucket: c.Bucket, prefix: c.Prefix}
	if s.prefix != "" && !strings.HasSuffix(s.prefix, "/") {
		s.prefix += "/"
	}
	for _, err := range s.List(ctx) {
		if err != nil {
			s.Close()
			return nil, err
		}
		break
	}
	return s, nil
}

// trust adds the authorities of a file to the system's.
func trust(transport *http.Transport, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("S3 authorities: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // a box without authorities trusts those of the file alone
	}
	if !pool.AppendCertsFromPEM(text) {
		return fmt.Errorf("S3 authorities: %s has no certificate in PEM", path)
	}
	if transport.TLSClientConfig == nil {
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	transport.TLSClientConfig.RootCAs = pool
	return nil
}

// Close closes idle connections.
func (s *S3) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}

func (s *S3) name(digest string) string { return s.prefix + digest }

// Has renews the time of an old blob by copying it onto itself, within the store.
func (s *S3) Has(ctx context.Context, digest string) (int64, bool, error) {
	if err := CheckDigest(digest); err != nil {
		return 0, false, err
	}
	info, err := s.client.StatObject(ctx, s.bucket, s.name(digest), minio.StatObjectOptions{})
	if err == nil && time.Since(info.LastModified) > Renewal {
		_, err = s.client.ComposeObject(ctx,
			minio.CopyDestOptions{Bucket: s.bucket, Object: s.name(digest), ReplaceMetadata: true,
				UserMetadata: map[string]string{"Renewed": time.Now().UTC().Format(time.RFC3339)}},
			minio.CopySrcOptions{Bucket: s.bucket, Object: s.name(digest)})
	}
	if isMissing(err) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, s.explain("look for the blob "+digest[:12], err)
	}
	return info.Size, true, nil
}

// Put sends small content at once and large content in parts, which become a blob when all are there.
func (s *S3) Put(ctx context.Context, digest string, size int64, content io.Reader) error {
	if err := CheckDigest(digest); err != nil {
		return err
	}
	what := "put the blob " + digest[:12]
	var from io.Reader = newChecked(withContext{ctx, content}, digest, size)
	if size <= partBytes { // in memory, so that it can be sent again
		var b bytes.Buffer
		b.Grow(int(max(size, 0)) + bytes.MinRead)
		if _, err := b.ReadFrom(from); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		from = bytes.NewReader(b.Bytes())
	}
	_, err := s.client.PutObject(ctx, s.bucket, s.name(digest), from, size, minio.PutObjectOptions{
		ContentType: "application/octet-stream", SendContentMd5: true, PartSize: partBytes,
	})
	if err != nil {
		return s.explain(what, err)
	}
	return nil
}

// Open asks for the size; the content comes as it is read.
func (s *S3) Open(ctx context.Context, digest string) (Blob, error) {
	if err := CheckDigest(digest); err != nil {
		return nil, err
	}
	object, err := s.client.GetObject(ctx, s.bucket, s.name(digest), minio.GetObjectOptions{})
	var info minio.ObjectInfo
	if err == nil {
		if info, err = object.Stat(); err != nil {
			object.Close()
		}
	}
	switch {
	case isMissing(err):
		return nil, fmt.Errorf("%.12s: %w", digest, ErrNotFound)
	case err != nil:
		return nil, s.explain("open the blob "+digest[:12], err)
	}
	return newVerified(object, digest, info.Size), nil
}

// Remove asks for the blob's time right before it removes it. S3 has no request for both: a Has of another head between
// the two comes too late, so a head asks Has again once it has noted that it refers to a blob.
func (s *S3) Remove(ctx context.Context, digest string, before time.Time) (bool, error) {
	if err := CheckDigest(digest); err != nil {
		return false, err
	}
	what := "remove the blob " + digest[:12]
	info, err := s.client.StatObject(ctx, s.bucket, s.name(digest), minio.StatObjectOptions{})
	if isMissing(err) || err == nil && !info.LastModified.Before(before) {
		return false, nil
	}
	if err == nil {
		err = s.client.RemoveObject(ctx, s.bucket, s.name(digest), minio.RemoveObjectOptions{})
	}
	if err != nil {
		return false, s.explain(what, err)
	}
	return true, nil
}

// List asks for 1,000 blobs at a time.
func (s *S3) List(ctx context.Context) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for object := range s.client.ListObjectsIter(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.prefix, Recursive: true}) {
			if object.Err != nil {
				yield(Info{}, s.explain("list the blobs", object.Err))
				return
			}
			digest := strings.TrimPrefix(object.Key, s.prefix)
			if CheckDigest(digest) != nil {
				continue // not ours
			}
			if !yield(Info{digest, object.Size, object.LastModified}, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(Info{}, s.explain("list the blobs", err))
		}
	}
}

// sweep removes the parts of blobs that were begun before a time: heads that were killed have left them.
func (s *S3) sweep(ctx context.Context, before time.Time) error {
	core := minio.Core{Client: s.client}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for part := range s.client.ListIncompleteUploads(ctx, s.bucket, s.prefix, true) {
		if part.Err != nil {
			return s.explain("list unfinished blobs", part.Err)
		}
		if part.Initiated.Before(before) {
			err := core.AbortMultipartUpload(ctx, s.bucket, part.Key, part.UploadID)
			if err != nil && minio.ToErrorResponse(err).Code != minio.NoSuchUpload {
				return s.explain("remove an unfinished blob", err)
			}
		}
	}
	return nil
}

func isMissing(err error) bool {
	return err != nil && minio.ToErrorResponse(err).Code == minio.NoSuchKey
}

// explain says what to do about an error of the store.
func (s *S3) explain(what string, err error) error {
	remedy := ""
	answer := minio.ToErrorResponse(err)
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &untrusted):
		remedy = "the store's certificate is not trusted: name its authority as the CA file"
	case answer.Code == minio.NoSuchBucket:
		remedy = "the bucket does not exist: create it, or correct its name"
	case answer.Code == minio.InvalidAccessKeyID, answer.Code == minio.SignatureDoesNotMatch,
		answer.Code == "XAdminUserNotFound": // versitygw's for an access key
		remedy = "the store does not know these credentials: correct the access key or the secret key"
	case answer.Code == minio.AccessDenied:
		remedy = "the credentials may not do this: allow them to list, read, write and delete in the bucket"
	case strings.HasPrefix(answer.Code, "ExpiredToken"), answer.Code == "TokenRefreshRequired":
		remedy = "the credentials have expired: give the head new ones"
	case answer.Code == minio.RequestTimeTooSkewed:
		remedy = "this machine's clock is more than 15 minutes off, or the store's is: set it"
	case answer.Code == minio.InvalidRegion, answer.Code == minio.AuthorizationHeaderMalformed:
		remedy = "the bucket is in another region: correct it"
	case answer.StatusCode == http.StatusInsufficientStorage, strings.HasSuffix(answer.Code, "StorageFull"),
		strings.HasSuffix(answer.Code, "QuotaExceeded"):
		return fmt.Errorf("%s in the bucket %s at %s: %w: free some, or raise the quota: %w", what, s.bucket, s.client.EndpointURL(), ErrNoRoom, err)
	}
	where := fmt.Sprintf("%s in the bucket %s at %s", what, s.bucket, s.client.EndpointURL())
	var network net.Error
	switch busy := answer.StatusCode >= http.StatusInternalServerError || answer.StatusCode == http.StatusTooManyRequests; {
	case remedy != "":
		return fmt.Errorf("%s: %w: %s: %w", where, ErrRefused, remedy, err)
	case (busy || errors.As(err, &network)) && !errors.Is(err, context.Canceled):
		return &lab.AwayError{What: "the store of the fleet's files", Err: fmt.Errorf("%s: %w", where, err)}
	case answer.StatusCode >= http.StatusBadRequest: // the answer to a HEAD has no words
		return fmt.Errorf("%s: %w: %w", where, ErrRefused, err)
	}
	return fmt.Errorf("%s: %w", where, err)
}
