/** A client of a few lines for the tests of the development server: it sends exactly what a test wants. */
import * as TestUser from "@skein/auth/TestUser"
import * as Effect from "effect/Effect"
import * as jose from "jose"
import { createHash, randomBytes } from "node:crypto"
import { get } from "node:http"

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Readonly<Record<string, unknown>>
}

export interface Tokens {
  readonly access_token: string
  readonly refresh_token?: string
}

const answerOf = async (reply: Response): Promise<Answer> => {
  const text = await reply.text()
  return { status: reply.status, headers: reply.headers, body: text === "" ? {} : JSON.parse(text) }
}

export const postForm = (
  url: string,
  form: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {}
) => Effect.promise(() => fetch(url, { method: "POST", headers, body: new URLSearchParams(form) }).then(answerOf))

export const getJson = (url: string) =>
  Effect.promise(() => fetch(url).then((reply) => reply.json() as Promise<Readonly<Record<string, unknown>>>))

/** The status of a request whose Host header has another name, as after DNS rebinding. */
export const statusWithHost = (url: string, host: string) =>
  Effect.promise(() =>
    new Promise<number>((resolve, reject) =>
      get(url, { headers: { host } }, (reply) => {
        reply.resume()
        resolve(reply.statusCode!)
      }).on("error", reject)
    )
  )

export interface Client {
  readonly clientId: string
  readonly authorizationUrl: (params: Readonly<Record<string, string>>) => Effect.Effect<URL>
  readonly exchange: (answer: URLSearchParams, params?: Readonly<Record<string, string>>) => Effect.Effect<Tokens>
  readonly exchangeRaw: (answer: URLSearchParams, headers?: Readonly<Record<string, string>>) => Effect.Effect<Answer>
  readonly refresh: (refreshToken: string) => Effect.Effect<Answer>
  readonly post: (path: string, form: Readonly<Record<string, string>>) => Effect.Effect<Answer>
}

export interface ConnectOptions {
  readonly redirectUri: string
  readonly clientId?: string
  readonly clientName?: string
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** Registers a public native client. */
export const register = (issuer: string, { clientName, metadata, redirectUri }: ConnectOptions) =>
  Effect.promise(() =>
    fetch(`${issuer}/reg`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        client_name: clientName ?? "Tea client",
        redirect_uris: [redirectUri],
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        application_type: "native",
        token_endpoint_auth_method: "none",
        ...metadata
      })
    }).then(answerOf)
  )

/** A client, registered unless it has an id. */
export const connect = (issuer: string, options: ConnectOptions): Effect.Effect<Client> =>
  Effect.gen(function*() {
    const { redirectUri } = options
    const clientId = options.clientId ?? String((yield* register(issuer, options)).body["client_id"])
    const verifier = randomBytes(32).toString("base64url")
    const post = (path: string, form: Readonly<Record<string, string>>, headers = {}) =>
      postForm(`${issuer}/${path}`, { client_id: clientId, ...form }, headers)
    const exchangeRaw = (answer: URLSearchParams, headers = {}, params: Readonly<Record<string, string>> = {}) =>
      post("token", {
        grant_type: "authorization_code",
        code: answer.get("code") ?? "",
        redirect_uri: redirectUri,
        code_verifier: verifier,
        ...params
      }, headers)
    return {
      clientId,
      post,
      exchangeRaw,
      refresh: (refreshToken) => post("token", { grant_type: "refresh_token", refresh_token: refreshToken }),
      exchange: (answer, params) =>
        Effect.flatMap(exchangeRaw(answer, {}, params), ({ body }) =>
          body["access_token"] === undefined
            ? Effect.die(new Error(`${answer} gave no token: ${JSON.stringify(body)}`))
            : Effect.succeed(body as unknown as Tokens)),
      authorizationUrl: (params) =>
        Effect.sync(() => {
          const url = new URL(`${issuer}/auth`)
          const all = {
            client_id: clientId,
            redirect_uri: redirectUri,
            response_type: "code",
            state: randomBytes(8).toString("hex"),
            code_challenge: createHash("sha256").update(verifier).digest("base64url"),
            code_challenge_method: "S256",
            ...params
          }
          for (const [name, value] of Object.entries(all)) url.searchParams.set(name, value)
          return url
        })
    }
  })

/** Signs in as Ada with the scope `mcp:read`. */
export const signIn = (client: Client, resource: string, person = TestUser.make()): Effect.Effect<Tokens> =>
  Effect.gen(function*() {
    const url = yield* client.authorizationUrl({ scope: "mcp:read", resource })
    return yield* client.exchange(yield* Effect.orDie(person.signIn(url)))
  })

/** The claims of a token whose signature, issuer, audience and type are right. */
export const verify = (issuer: string, token: string, audience: string) =>
  Effect.promise(async () => {
    const keys = jose.createRemoteJWKSet(new URL(`${issuer}/jwks`))
    return (await jose.jwtVerify(token, keys, { issuer, audience, typ: "at+jwt" })).payload
  })

/** The claims of a token, unverified. */
export const claimsOf = (token: string): Readonly<Record<string, unknown>> => jose.decodeJwt(token)

/** A client assertion (RFC 7523), signed with a new key unless one is given. */
export const assertion = (clientId: string, audience: string, key?: { readonly privateKey: jose.CryptoKey }) =>
  Effect.promise(async () => {
    const { privateKey } = key ?? await jose.generateKeyPair("ES256")
    return new jose.SignJWT({ iss: clientId, sub: clientId, aud: audience, jti: randomBytes(8).toString("hex") })
      .setProtectedHeader({ alg: "ES256" })
      .setIssuedAt()
      .setExpirationTime("1 minute")
      .sign(privateKey)
  })
