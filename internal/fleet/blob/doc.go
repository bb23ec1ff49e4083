// Package blob keeps the files of a fleet's runs by their SHA-256: each content once, whatever its name, in a folder
// ([Folder]) or in an S3-compatible store ([S3]).
//
// In flow files: by [Store.Put], or over HTTP, resumably, from a box ([Send]) to the head ([Uploads]). Out flow readers
// that check what they read, and copies in run folders ([Place]). [Lister] makes the list of a run folder's files with
// their digests; [Collect] removes the blobs that nothing refers to any longer.
//
// The protocol of uploads is HEAD and PATCH with Upload-Offset, Upload-Length and Upload-Complete, as in
// draft-ietf-httpbis-resumable-upload and tus 1.0, where the address has the digest and so names the upload.
package blob
