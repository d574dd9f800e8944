/**
 * Tokens that only their issuer can read: who their user is, and which application they were issued to. A token of any
 * other application is refused by its audience: a check that it belongs to some user is not enough.
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { objectOf, textOf } from "../shared/web.ts"
import { fetchDocument, type FetchOptions, unavailable } from "../server/tokens/fetchDocument.ts"
import type { OwnOptions, OwnToken } from "../server/tokens/ownVerifier.ts"
import { InvalidToken, type VerifierUnavailable } from "../server/tokens/verifiedToken.ts"
import type { IdTokenClaims, UpstreamUser } from "../proxy/upstream.ts"

/** Options of the verifier of GitHub's tokens. */
export interface GithubVerifierOptions extends FetchOptions {
  /** The client ID of your OAuth app or GitHub App. Tokens of other applications are refused. */
  readonly clientId: string
  /** Its secret. It is sent to GitHub with each token. */
  readonly clientSecret: Redacted.Redacted
}

/** Options of the verifier of Google's tokens. */
export interface GoogleVerifierOptions extends FetchOptions {
  /** The client IDs of your applications. Tokens of other applications are refused. */
  readonly clientIds: ReadonlyArray<string>
}

type Answer<A> = Effect.Effect<A, InvalidToken | VerifierUnavailable>

const inactive = (message: string): InvalidToken => new InvalidToken({ problem: "Inactive", message })

const retryAfterSeconds = 30

/** GitHub's API refuses requests without `User-Agent`, which some platforms do not send. */
const apiHeaders = (authorization: string) => ({
  accept: "application/vnd.github+json",
  authorization,
  "content-type": "application/json",
  "user-agent": "skein",
  "x-github-api-version": "2022-11-28"
})

const githubToken = (json: unknown): OwnToken | undefined => {
  const { app, expires_at, scopes, user } = objectOf(json) ?? {}
  const { client_id } = objectOf(app) ?? {}
  const { id } = objectOf(user) ?? {}
  if (typeof client_id !== "string" || typeof id !== "number") return undefined
  return {
    subject: String(id),
    clientId: client_id,
    audiences: [client_id],
    // The tokens of a GitHub App have permissions and no scopes.
    scopes: Array.isArray(scopes) ? scopes.filter((scope) => typeof scope === "string") : [],
    // A date that cannot be read is NaN, which is refused.
    expiresAt: expires_at == null ? undefined : Date.parse(String(expires_at)) / 1000,
    claims: { user, app }
  }
}

/** `POST /applications/{client_id}/token` of GitHub's API, with the credentials of the application. */
export const github = (issuer: string, api: string, options: GithubVerifierOptions): OwnOptions => {
  const { clientId, clientSecret } = options
  const url = `${api}/applications/${encodeURIComponent(clientId)}/token`
  const verify = (token: string): Answer<OwnToken> => {
    const headers = apiHeaders(`Basic ${btoa(`${clientId}:${Redacted.value(clientSecret)}`)}`)
    const init = { method: "POST", headers, body: JSON.stringify({ access_token: token }) }
    return Effect.flatMap(fetchDocument(url, init, options), ({ json, status }): Answer<OwnToken> => {
      // 404: it is not a token of this application, or was revoked. 422: it is not a token.
      if (status === 404 || status === 422) return Effect.fail(inactive("the token is not one of the application"))
      if (status !== 200) {
        const fault = status === 401 ? ": it refuses the client ID or the secret of the verifier" : ""
        return Effect.fail(unavailable(`GitHub answered ${status} to the check of a token${fault}`, retryAfterSeconds))
      }
      const found = githubToken(json)
      return found === undefined
        ? Effect.fail(inactive("the token has no user or no application"))
        : Effect.succeed(found)
    })
  }
  return { issuer, audiences: [clientId], verify }
}

/** The person of a token, for a proxy: `GET /user` of GitHub's API. GitHub has no userinfo endpoint. */
export const githubUser =
  (api: string) => (token: Redacted.Redacted): Effect.Effect<UpstreamUser, VerifierUnavailable> => {
    const init = { headers: apiHeaders(`Bearer ${Redacted.value(token)}`) }
    return Effect.flatMap(fetchDocument(`${api}/user`, init, {}), ({ json, status }) => {
      const { id, login } = objectOf(json) ?? {}
      return status === 200 && typeof id === "number"
        ? Effect.succeed({ id: String(id), name: typeof login === "string" ? login : undefined })
        : Effect.fail(unavailable(`GitHub answered ${status} to a request for the user`, retryAfterSeconds))
    })
  }

/**
 * The person of an ID token of Entra, for a proxy. Its userinfo endpoint accepts tokens of Microsoft Graph only, and an
 * upstream whose scopes are those of another API gives none. `oid` is the same in all applications, within its directory.
 */
export const entraUser =
  (tenants: ReadonlyArray<string> | "any" | undefined) =>
  (_token: Redacted.Redacted, idToken: IdTokenClaims = {}): Effect.Effect<UpstreamUser, InvalidToken> => {
    const [name, oid, tid] = [textOf(idToken["name"]), textOf(idToken["oid"]), textOf(idToken["tid"])]
    if (oid === undefined) return Effect.fail(inactive("the ID token has no oid: the scope needs openid and profile"))
    if (tenants === undefined) return Effect.succeed({ id: oid, name })
    return tid !== undefined && (tenants === "any" || tenants.includes(tid))
      ? Effect.succeed({ id: `${tid} ${oid}`, name })
      : Effect.fail(inactive("the person is of a directory that is not accepted"))
  }

/** The tokeninfo endpoint of Google. The token is in a header, since addresses are logged. */
export const google = (issuer: string, options: GoogleVerifierOptions): OwnOptions => {
  const url = "https://oauth2.googleapis.com/tokeninfo"
  const verify = (token: string): Answer<OwnToken> => {
    const init = { method: "POST", headers: { accept: "application/json", authorization: `Bearer ${token}` } }
    return Effect.flatMap(fetchDocument(url, init, options), ({ json, status }): Answer<OwnToken> => {
      if (status === 400 || status === 401) return Effect.fail(inactive("the token is not active"))
      if (status !== 200) {
        return Effect.fail(unavailable(`Google answered ${status} to the check of a token`, retryAfterSeconds))
      }
      const claims = objectOf(json) ?? {}
      const { aud, azp, exp, scope, sub } = claims
      const subject = textOf(sub)
      // Without its user, all users of one application would share sessions and tasks.
      if (subject === undefined) return Effect.fail(inactive("the token names no user: it needs the scope openid"))
      return Effect.succeed({
        subject,
        clientId: textOf(azp),
        audiences: typeof aud === "string" ? [aud] : [],
        scopes: (textOf(scope) ?? "").split(" ").filter((one) => one !== ""),
        // A text in practice. A missing one is NaN, which is refused.
        expiresAt: Number(exp),
        claims
      })
    })
  }
  return { issuer, audiences: options.clientIds, verify }
}
