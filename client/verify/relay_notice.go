// Package relay verifies notices that Relay posts to your server. Needs Go 1.19 or later.
package relay

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const tolerance = 5 * time.Minute

var signatureHeader = regexp.MustCompile(`^t=([0-9]{1,13})((?:,v1=[0-9a-f]{64}){1,8})$`)

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
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(match[1] + "."))
	mac.Write(body)
	expected := []byte(hex.EncodeToString(mac.Sum(nil)))
	// During the overlap of a rotation, a notice has a signature of each secret.
	for _, one := range strings.Split(match[2], ",v1=")[1:] {
		if hmac.Equal(expected, []byte(one)) {
			return true
		}
	}
	return false
}
