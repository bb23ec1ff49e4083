// Package versity tries the S3 store against a real server of another project: versitygw, an S3 gateway over a folder.
// Its tests build it once in a pinned version, into the user's cache folder; nothing of it is in go.mod.
package versity
