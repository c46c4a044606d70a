// Package cronjob starts Jobs on a schedule. There is one timer for each CronJob
// that is not suspended, due at its next time.
package cronjob
