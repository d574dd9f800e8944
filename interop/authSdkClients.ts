/** The clients of the official SDKs with their own OAuth code, and a provider that stores its state in memory. */
import * as V2 from "@modelcontextprotocol/client"
import {
  type OAuthClientProvider,
  UnauthorizedError as V1UnauthorizedError
} from "@modelcontextprotocol/sdk/client/auth.js"
import { Client as V1Client } from "@modelcontextprotocol/sdk/client/index.js"
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import type { Revision } from "@skein/protocol/Revision"
import type * as TestUser from "@skein/auth/TestUser"
import * as Effect from "effect/Effect"
import { randomUUID } from "node:crypto"
import { requestRevision } from "./sdkV1Client.ts"
import { revisionOptions } from "./sdkV2Client.ts"

/** The tokens of a sign-in, with the issuer that the SDKs add. */
export interface StoredTokens {
  readonly access_token: string
  readonly refresh_token?: string
  readonly scope?: string
  readonly token_type: string
  readonly issuer?: string
}

export interface ProviderOptions {
  /** The grants of the client; by default those that an SDK registers. */
  readonly grantTypes?: ReadonlyArray<string>
  /** The URL of the client ID metadata document. */
  readonly clientMetadataUrl?: string
  /** Whether tokens are bound to a key. Only SDK v2 can. */
  readonly dpop?: boolean
}

export const redirectUri = "http://127.0.0.1:41997/callback"

/** An `OAuthClientProvider` of both SDKs, whose redirects a test follows. It stores exactly what an SDK gives it. */
export class MemoryProvider {
  readonly redirectUrl = redirectUri
  readonly clientMetadata: { readonly redirect_uris: Array<string>; readonly grant_types: Array<string> }
  readonly clientMetadataUrl?: string
  readonly dpop?: () => Promise<V2.DpopSession>
  /** The authorization requests, in order. */
  readonly redirects: Array<URL> = []
  /** How often tokens were saved. */
  saves = 0
  stored: StoredTokens | undefined
  /** The kinds of credentials that were invalidated. */
  readonly invalidated: Array<string> = []
  #client: { readonly client_id: string } | undefined
  #verifier = ""
  #discovery: unknown

  constructor({ clientMetadataUrl, dpop, grantTypes }: ProviderOptions = {}) {
    this.clientMetadata = {
      client_name: "SDK client",
      redirect_uris: [redirectUri],
      grant_types: [...grantTypes ?? ["authorization_code", "refresh_token"]],
      response_types: ["code"],
      token_endpoint_auth_method: "none"
    } as MemoryProvider["clientMetadata"]
    if (clientMetadataUrl !== undefined) this.clientMetadataUrl = clientMetadataUrl
    if (dpop === true) {
      const session = V2.DpopSession.create()
      this.dpop = () => session
    }
  }

  readonly state = () => randomUUID()
  readonly clientInformation = () => this.#client
  readonly saveClientInformation = (client: { readonly client_id: string }) => {
    this.#client = client
  }
  readonly tokens = () => this.stored
  readonly saveTokens = (tokens: StoredTokens) => {
    this.saves++
    this.stored = tokens
  }
  readonly redirectToAuthorization = (url: URL) => void this.redirects.push(url)
  readonly saveCodeVerifier = (verifier: string) => {
    this.#verifier = verifier
  }
  readonly codeVerifier = () => this.#verifier
  readonly saveDiscoveryState = (state: unknown) => {
    this.#discovery = state
  }
  readonly discoveryState = () => this.#discovery as V2.OAuthDiscoveryState | undefined
  readonly invalidateCredentials = (kind: "all" | "client" | "tokens" | "verifier" | "discovery") => {
    this.invalidated.push(kind)
    if (kind === "all" || kind === "client") this.#client = undefined
    if (kind === "all" || kind === "tokens") this.stored = undefined
    if (kind === "all" || kind === "discovery") this.#discovery = undefined
  }
}

/** A connection that may have no tokens yet. */
export interface Connection {
  readonly connect: () => Promise<void>
  /** Exchanges the code of a redirect. */
  readonly finish: (answer: URLSearchParams) => Promise<void>
  /** The text of the result of a tool. */
  readonly call: (name: string) => Promise<string>
  readonly revision: () => string | undefined
  /** Errors outside of calls. */
  readonly errors: ReadonlyArray<Error>
  readonly close: () => Promise<void>
}

export interface Sdk {
  readonly name: string
  readonly revisions: ReadonlyArray<Revision>
  readonly open: (url: string, provider: unknown, revision?: Revision) => Connection
  readonly isUnauthorized: (error: unknown) => boolean
}

const textOf = (result: unknown): string => {
  const { content } = result as { readonly content: ReadonlyArray<{ readonly text: string }> }
  return content[0]!.text
}

const information = { name: "auth", version: "1.0.0" }

export const v1: Sdk = {
  name: "sdk-v1",
  revisions: ["2025-03-26", "2025-06-18", "2025-11-25"],
  isUnauthorized: (error) => error instanceof V1UnauthorizedError,
  open: (url, provider, revision) => {
    const options = { authProvider: provider as OAuthClientProvider }
    const transport = url.endsWith("/sse")
      ? new SSEClientTransport(new URL(url), options)
      : new StreamableHTTPClientTransport(new URL(url), options)
    const agreed = requestRevision(transport as Transport, revision)
    const client = new V1Client(information)
    const errors: Array<Error> = []
    client.onerror = (error) => errors.push(error)
    return {
      errors,
      revision: agreed,
      connect: () => client.connect(transport as Transport),
      finish: (answer) => transport.finishAuth(answer.get("code")!),
      call: async (name) => textOf(await client.callTool({ name, arguments: {} })),
      close: () => client.close()
    }
  }
}

export const v2: Sdk = {
  name: "sdk-v2",
  revisions: ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"],
  isUnauthorized: (error) => error instanceof V2.UnauthorizedError,
  open: (url, provider, revision) => {
    const options = { authProvider: provider as V2.OAuthClientProvider }
    const transport = url.endsWith("/sse")
      ? new V2.SSEClientTransport(new URL(url), options)
      : new V2.StreamableHTTPClientTransport(new URL(url), options)
    const client = new V2.Client(information, revisionOptions(revision))
    const errors: Array<Error> = []
    client.onerror = (error) => errors.push(error)
    return {
      errors,
      revision: () => client.getNegotiatedProtocolVersion(),
      connect: () => client.connect(transport),
      finish: (answer) => transport.finishAuth(answer),
      call: async (name) => textOf(await client.callTool({ name, arguments: {} })),
      close: () => client.close()
    }
  }
}

/** Runs an action of a connection, and returns whether the SDK needs the person. Other errors are thrown. */
const needsPerson = async (sdk: Sdk, action: () => Promise<unknown>): Promise<boolean> => {
  try {
    await action()
    return false
  } catch (error) {
    if (sdk.isUnauthorized(error)) return true
    throw error
  }
}

/** The person follows the last redirect, and the SDK exchanges the code. */
export const finish = async (connection: Connection, provider: MemoryProvider, person: TestUser.TestUser) => {
  const url = provider.redirects.at(-1)!
  const answer = await Effect.runPromise(person.signIn(url))
  if (answer.get("state") !== url.searchParams.get("state")) throw new Error("the answer has another state")
  await connection.finish(answer)
}

/** Connects, after the person has signed in if the provider has no tokens yet. */
export const signIn = async (
  sdk: Sdk,
  { person, provider, revision, url }: {
    readonly url: string
    readonly provider: MemoryProvider
    readonly person: TestUser.TestUser
    readonly revision?: Revision
  }
): Promise<Connection> => {
  const first = sdk.open(url, provider, revision)
  if (!await needsPerson(sdk, first.connect)) return first
  await finish(first, provider, person)
  await first.close()
  // The transports of both SDKs can be started once.
  const second = sdk.open(url, provider, revision)
  await second.connect()
  return second
}

/** Calls a tool, and again after the person has agreed to more scopes. */
export const callWithStepUp = async (
  sdk: Sdk,
  connection: Connection,
  provider: MemoryProvider,
  person: TestUser.TestUser,
  name: string
): Promise<string> => {
  const asked = provider.redirects.length
  try {
    return await connection.call(name)
  } catch (error) {
    if (!sdk.isUnauthorized(error) || provider.redirects.length === asked) throw error
  }
  await finish(connection, provider, person)
  return connection.call(name)
}
