<?php
// Verifies a notice that Relay posts to your server. Needs PHP 7.1 or later.
//
// $body is the raw body: file_get_contents('php://input').
// $header is $_SERVER['HTTP_X_SERVICE_SIGNATURE'], and $secret is the relay's signing secret.

const RELAY_TOLERANCE_SECONDS = 300;

function is_from_relay(string $body, ?string $header, string $secret, ?int $now = null): bool
{
    // Anyone can sign with an empty secret, such as that of a variable that is not set.
    if ($secret === '' || preg_match('/\At=([0-9]{1,13})((?:,v1=[0-9a-f]{64}){1,8})\z/', $header ?? '', $match) !== 1) {
        return false;
    }
    [, $sentAt, $signatures] = $match;
    if (abs(($now ?? time()) - (int) $sentAt) > RELAY_TOLERANCE_SECONDS) {
        return false;
    }
    $expected = hash_hmac('sha256', "$sentAt.$body", $secret);
    // During the overlap of a rotation, a notice has a signature of each secret.
    foreach (array_slice(explode(',v1=', $signatures), 1) as $one) {
        if (hash_equals($expected, $one)) {
            return true;
        }
    }
    return false;
}
