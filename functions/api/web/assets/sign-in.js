// Signing in at the stack's issuer: OpenID Connect, authorization code with PKCE. The tokens stay in this tab.

const TOKENS = "rowmill.tokens";
const PENDING = "rowmill.signing-in";
/** How long before its end a token is renewed. */
const RENEWED_BEFORE_MS = 60_000;

/**
 * @typedef {object} SignIn
 * @property {string} issuer
 * @property {string} clientId
 * @property {string} scope
 * @property {string} audience
 */

/** @typedef {{token: string, refresh?: string, ends: number}} Tokens */

/** @type {SignIn | null} */
let config = null;
/** @type {Tokens | null} */
let tokens = JSON.parse(sessionStorage.getItem(TOKENS) ?? "null");
/** @type {Promise<void> | null} */
let renewal = null;

/** @param {SignIn | null} signIn */
export function configure(signIn) {
  config = signIn;
}

/** Whether people can sign in here. */
export const isPossible = () => config !== null;

/** Who is signed in; empty if nobody is. */
export function person() {
  if (!tokens) return "";
  const claims = claimsOf(tokens.token);
  return claims.preferred_username ?? claims.email ?? claims.name ?? claims.sub ?? "";
}

function claimsOf(token) {
  try {
    const base64 = token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/");
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))));
  } catch {
    return {};
  }
}

/** The token for the API, renewed if it is about to end; `null` if nobody is signed in. */
export async function token() {
  if (tokens && tokens.refresh && tokens.ends - Date.now() < RENEWED_BEFORE_MS) {
    renewal ??= renew(tokens.refresh).finally(() => (renewal = null));
    await renewal;
  }
  return tokens?.token ?? null;
}

/** @param {string} refresh */
async function renew(refresh) {
  try {
    keep(await granted({ grant_type: "refresh_token", refresh_token: refresh }), refresh);
  } catch {
    // The API says when the old token is of no use any more.
    if (tokens) tokens.refresh = undefined;
  }
}

/** Sends the person to the issuer. `again` asks for a new login there. */
export async function start(again = false) {
  if (!config) return;
  const verifier = random(), state = random();
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  const { authorization_endpoint } = await discovered(config.issuer);
  sessionStorage.setItem(PENDING, JSON.stringify({ verifier, state, hash: location.hash }));
  const page = new URL(authorization_endpoint);
  const query = {
    response_type: "code", client_id: config.clientId, redirect_uri: redirectUri(), scope: config.scope, state,
    code_challenge: base64url(new Uint8Array(digest)), code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries(query)) page.searchParams.set(name, value);
  if (config.audience && config.audience !== config.clientId) page.searchParams.set("audience", config.audience);
  if (again) page.searchParams.set("prompt", "login");
  location.assign(page);
}

/**
 * Takes the code that the issuer sent the person back with, if it did.
 * @throws {Error} if the issuer refused
 */
export async function finish() {
  const query = new URLSearchParams(location.search);
  if (!query.has("state") || !(query.has("code") || query.has("error"))) return;
  const pending = JSON.parse(sessionStorage.getItem(PENDING) ?? "null");
  sessionStorage.removeItem(PENDING);
  // Neither the code nor what was asked for stays in the address.
  history.replaceState(null, "", location.pathname + (pending?.hash ?? ""));
  if (!config || pending?.state !== query.get("state")) return;
  const refusal = query.get("error_description") ?? query.get("error");
  if (refusal) throw new Error(`The issuer refused the sign-in: ${refusal}`);
  const grant = { grant_type: "authorization_code", code: query.get("code") ?? "", redirect_uri: redirectUri() };
  keep(await granted({ ...grant, code_verifier: pending.verifier }));
}

/** Forgets the tokens. */
export function end() {
  tokens = null;
  sessionStorage.removeItem(TOKENS);
}

/** @param {any} answer @param {string} [lastRefresh] */
function keep(answer, lastRefresh) {
  // API Gateway verifies JSON Web Tokens only.
  const token = [answer.access_token, answer.id_token].find((one) => one?.split(".").length === 3);
  if (!token) throw new Error("The issuer sent no token that the API can verify.");
  const seconds = answer.expires_in ?? claimsOf(token).exp - Date.now() / 1000;
  tokens = { token, refresh: answer.refresh_token ?? lastRefresh, ends: Date.now() + (seconds || 3600) * 1000 };
  sessionStorage.setItem(TOKENS, JSON.stringify(tokens));
}

/** @param {Record<string, string>} grant */
async function granted(grant) {
  if (!config) throw new Error("Nobody can sign in here.");
  const { token_endpoint } = await discovered(config.issuer);
  const body = new URLSearchParams({ ...grant, client_id: config.clientId });
  const answer = await fetch(token_endpoint, { method: "POST", body, credentials: "omit" });
  if (!answer.ok) throw new Error(`The issuer gave no token (status ${answer.status}). Sign in again.`);
  return answer.json();
}

/** @param {string} issuer */
async function discovered(issuer) {
  const answer = await fetch(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`, { credentials: "omit" });
  if (!answer.ok) throw new Error("The issuer does not tell where to sign in.");
  const document = await answer.json();
  if (document.issuer.replace(/\/$/, "") !== issuer.replace(/\/$/, "")) throw new Error("The issuer is another one.");
  return document;
}

const redirectUri = () => location.origin + location.pathname;

const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

/** @param {Uint8Array} bytes */
function base64url(bytes) {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
