// Package review answers the kinds that ask the API server a question and are
// not stored: token reviews, access reviews, who-am-I.
package review
