/** The addresses of one-time links. The token stands in the fragment, which browsers send to nobody. */

/** For the first owner: opens the page that asks for e-mail and password. */
export function setupUrl(baseUrl: string, token: string): string {
  return `${baseUrl}/setup#${token}`;
}

/** For a forgotten password. */
export function resetUrl(baseUrl: string, token: string): string {
  return `${baseUrl}/reset#${token}`;
}

/** For local development: the dashboard opens signed in. */
export function localUrl(baseUrl: string, token: string): string {
  return `${baseUrl}/signin#${token}`;
}
