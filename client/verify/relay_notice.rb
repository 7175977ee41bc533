# Verifies a notice that Relay posts to your server. Needs Ruby 2.7 or later.
#
# `body` is the raw body: `request.raw_post` in Rails, `request.body.read` in Sinatra.
# `header` is the header `X-Service-Signature`, and `secret` is the relay's signing secret.
require "openssl"

RELAY_TOLERANCE_SECONDS = 300

def from_relay?(body, header, secret, now = Time.now)
  match = /\At=([0-9]{1,13})((?:,v1=[0-9a-f]{64}){1,8})\z/.match(header.to_s.b)
  # Anyone can sign with an empty secret, such as that of a variable that is not set.
  return false if match.nil? || secret.to_s.empty?

  sent_at, signatures = match.captures
  return false if (now.to_i - sent_at.to_i).abs > RELAY_TOLERANCE_SECONDS

  expected = OpenSSL::HMAC.hexdigest("SHA256", secret, "#{sent_at}.".b + body.b)
  # During the overlap of a rotation, a notice has a signature of each secret.
  signatures.split(",v1=").drop(1).any? { |one| OpenSSL.fixed_length_secure_compare(expected, one) }
end
