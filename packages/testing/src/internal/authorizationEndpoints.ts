/**
 * The endpoints of an authorization server that is correct: its faults are applied to its replies.
 */
import { createHash, randomUUID } from "node:crypto"
import type { IncomingHttpHeaders } from "node:http"
import type { Reply } from "./authorizationFaults.ts"
import { parse } from "./faultyTexts.ts"

interface Code {
  readonly clientId: string
  readonly redirectUri: string
  readonly challenge: string
  readonly scope: string | undefined
}

/** The tokens of one grant. */
interface Grant {
  readonly clientId: string
  readonly scope: string | undefined
  readonly accessTokens: Set<string>
  refreshToken: string
  isRevoked: boolean
}

/** A request to the authorization server. */
export interface AuthorizationRequest {
  readonly query: URLSearchParams
  readonly form: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

const failure = (error: string, description: string): Reply => ({
  status: 400,
  json: { error, error_description: description }
})

/** Issues codes and tokens, rotates refresh tokens, and revokes a grant whose refresh token is used twice. */
export class AuthorizationEndpoints {
  issuer = ""
  reuseCount = 0
  /** Everything that must not be printed: what was issued, and what was received. */
  readonly secrets = new Set<string>()
  readonly #lifetime: number
  readonly #codes = new Map<string, Code>()
  /** The grants by each refresh token that they had. */
  readonly #grants = new Map<string, Grant>()

  constructor(lifetimeSeconds: number) {
    this.#lifetime = lifetimeSeconds
  }

  /** Whether the protected server accepts a token. */
  accepts(token: string): boolean {
    for (const grant of this.#grants.values()) if (!grant.isRevoked && grant.accessTokens.has(token)) return true
    return false
  }

  expireTokens(): void {
    for (const grant of this.#grants.values()) grant.accessTokens.clear()
  }

  metadata(): Reply {
    const { issuer } = this
    return {
      status: 200,
      json: {
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        registration_endpoint: `${issuer}/register`,
        revocation_endpoint: `${issuer}/revoke`,
        response_types_supported: ["code"],
        code_challenge_methods_supported: ["S256"],
        token_endpoint_auth_methods_supported: ["none", "client_secret_basic", "client_secret_post"],
        authorization_response_iss_parameter_supported: true
      }
    }
  }

  register({ body }: AuthorizationRequest): Reply {
    const json = parse(body) ?? {}
    const secret = json["token_endpoint_auth_method"] === "none" ? {} : { client_secret: this.#secret("client") }
    return { status: 201, json: { ...json, client_id: `client-${randomUUID()}`, ...secret } }
  }

  authorize({ query }: AuthorizationRequest): Reply {
    const redirectUri = query.get("redirect_uri")
    if (redirectUri === null || query.get("code_challenge_method") !== "S256") {
      return failure("invalid_request", "redirect_uri or PKCE with S256 is missing")
    }
    const code = this.#secret("code")
    this.#codes.set(code, {
      clientId: query.get("client_id") ?? "",
      redirectUri,
      challenge: query.get("code_challenge") ?? "",
      scope: query.get("scope") ?? undefined
    })
    const location = new URL(redirectUri)
    location.searchParams.set("code", code)
    location.searchParams.set("state", query.get("state") ?? "")
    location.searchParams.set("iss", this.issuer)
    return { status: 302, location }
  }

  token(request: AuthorizationRequest): Reply {
    const { form } = request
    switch (form.get("grant_type")) {
      case "authorization_code":
        return this.#redeem(request)
      case "refresh_token":
        return this.#refresh(request)
      case "client_credentials":
        return this.#issue(this.#grant("client", form.get("scope") ?? undefined), request)
      default:
        return failure("unsupported_grant_type", "unknown grant")
    }
  }

  revoke({ form }: AuthorizationRequest): Reply {
    const grant = this.#grants.get(form.get("token") ?? "")
    if (grant !== undefined) grant.isRevoked = true
    return { status: 200 }
  }

  /** Remembers the secrets in a request, so that a test can search for them. */
  receive({ form, headers }: AuthorizationRequest): void {
    for (const name of ["code", "code_verifier", "client_secret", "refresh_token", "token", "assertion"]) {
      const value = form.get(name)
      if (value !== null && value !== "") this.secrets.add(value)
    }
    const credentials = headers.authorization?.split(" ")[1]
    if (credentials !== undefined) this.secrets.add(credentials)
  }

  #secret(kind: string): string {
    const secret = `${kind}-${randomUUID()}`
    this.secrets.add(secret)
    return secret
  }

  #redeem(request: AuthorizationRequest): Reply {
    const { form } = request
    const code = this.#codes.get(form.get("code") ?? "")
    const challenge = createHash("sha256").update(form.get("code_verifier") ?? "").digest("base64url")
    if (code === undefined || code.challenge !== challenge || code.redirectUri !== form.get("redirect_uri")) {
      return failure("invalid_grant", "the code is unknown, was used, or belongs to another request")
    }
    this.#codes.delete(form.get("code") ?? "")
    return this.#issue(this.#grant(code.clientId, code.scope), request)
  }

  #refresh(request: AuthorizationRequest): Reply {
    const used = request.form.get("refresh_token") ?? ""
    const grant = this.#grants.get(used)
    if (grant === undefined) return failure("invalid_grant", "the refresh token is unknown")
    if (grant.refreshToken !== used) {
      this.reuseCount++
      grant.isRevoked = true
    }
    return grant.isRevoked ? failure("invalid_grant", "the grant was revoked") : this.#issue(grant, request)
  }

  #grant(clientId: string, scope: string | undefined): Grant {
    return { clientId, scope, accessTokens: new Set(), refreshToken: "", isRevoked: false }
  }

  #issue(grant: Grant, { headers }: AuthorizationRequest): Reply {
    const accessToken = this.#secret("access")
    grant.accessTokens.add(accessToken)
    grant.refreshToken = this.#secret("refresh")
    this.#grants.set(grant.refreshToken, grant)
    return {
      status: 200,
      json: {
        access_token: accessToken,
        // Proofs are not verified: a resource server does that, and these servers test clients.
        token_type: headers["dpop"] === undefined ? "Bearer" : "DPoP",
        expires_in: this.#lifetime,
        refresh_token: grant.refreshToken,
        ...(grant.scope === undefined ? {} : { scope: grant.scope })
      }
    }
  }
}
