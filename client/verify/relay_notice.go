// Package relay verifies notices that Relay posts to your server. Needs Go 1.19 or later.
package relay

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strconv"
	"time"
)

const tolerance = 5 * time.Minute

var signatureHeader = regexp.MustCompile(`^t=([0-9]{1,13}),v1=([0-9a-f]{64})$`)

// IsFromRelay takes the raw body, as io.ReadAll(request.Body) gives it, the header
// X-Service-Signature, the relay's signing secret and the current time.
func IsFromRelay(body []byte, header, secret string, now time.Time) bool {
	match := signatureHeader.FindStringSubmatch(header)
	// Anyone can sign with an empty secret, such as that of a variable that is not set.
	if match == nil || secret == "" {
		return false
	}
	sentAt, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil || now.Sub(time.Unix(sentAt, 0)).Abs() > tolerance {
		return false
	}
	signature, err := hex.DecodeString(match[2])
	if err != nil {
		return false
	}
	expected := hmac.New(sha256.New, []byte(secret))
	expected.Write([]byte(match[1] + "."))
	expected.Write(body)
	return hmac.Equal(expected.Sum(nil), signature)
}
