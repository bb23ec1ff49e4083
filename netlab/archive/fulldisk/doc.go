// Package fulldisk tests package archive on a disk that fills up, which needs
// root for a file system of its own; the other tests of that package need
// nothing of the machine.
package fulldisk
