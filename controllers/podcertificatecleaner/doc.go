// Package podcertificatecleaner deletes requests for pods' certificates half an hour
// after they were made: by then they are answered, or whoever asked has given up.
package podcertificatecleaner
