// Package csrcleaner deletes requests for certificates that are over: approved,
// denied or failed ones an hour after, those that nobody looked at after a day,
// and those whose certificate has expired.
package csrcleaner
