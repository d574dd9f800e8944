/**
 * Fetches what clients publish about themselves: client ID metadata documents, and the key sets of documents and
 * registrations (`jwks_uri`). Anybody can make the server fetch such an address, so the requests leave through an
 * `Outbound`, which refuses private addresses unless the operator has chosen another one.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Outbound } from "../shared/Outbound.ts"
import { parseObject, readText } from "../shared/web.ts"
import type { SealedStore } from "./sealedRecords.ts"

export interface ClientDocumentOptions {
  readonly outbound: Outbound
  readonly store: SealedStore
  /** How long the document of a client with a grant is kept, in milliseconds. */
  readonly keepMillis: number
  readonly onProblem: (event: string, detail: Readonly<Record<string, unknown>>) => void
}

/** The part of `fetch` that the engine uses. */
interface Init {
  readonly method?: string
  readonly headers?: ConstructorParameters<typeof Headers>[0]
}

type Document = Readonly<Record<string, unknown>>

const keyOf = (clientId: string): string => `Document ${clientId}`

/** Whether a client is described by a document. Registered clients have random ids. */
export const isDocumentId = (clientId: string): boolean => /^https:\/\//i.test(clientId)

/**
 * Why a document at this address is not fetched, or `undefined`. `hosts` has those whose documents are accepted: any by
 * default. "The `client_id` URL MUST use the "https" scheme and contain a path component" (2026-07-28, client
 * registration); the engine checks the rest of it.
 */
export const documentProblem = (
  clientId: string,
  hosts: ReadonlyArray<string> | undefined
): string | undefined => {
  const url = URL.parse(clientId)
  if (url === null || url.pathname === "/") return "the address of the document has no path"
  return hosts === undefined || hosts.includes(url.host) ? undefined : `documents of ${url.host} are not accepted`
}

// RFC 7591 has a secret by default, which a published document cannot have.
const withDefaults = (document: Document): Document => ({ token_endpoint_auth_method: "none", ...document })

/** Makes the function that the engine fetches with, and the one that keeps the document of a client with a grant. */
export const makeClientDocuments = ({ keepMillis, onProblem, outbound, store }: ClientDocumentOptions) => {
  const { maxDocumentBytes } = outbound
  const timeoutMillis = Duration.toMillis(outbound.requestTimeout)
  const run = Effect.runPromise
  const kept = (clientId: string): Promise<Document | undefined> =>
    run(Effect.map(store.get(keyOf(clientId)), (entry) => entry?.value as Document | undefined))
  const keep = (clientId: string, document: Document) =>
    store.set(keyOf(clientId), document, { expiresAt: Date.now() + keepMillis })

  const request = async (address: string, { headers, method = "GET" }: Init): Promise<Response> => {
    const reply = await outbound.fetch(address, {
      method,
      headers: Object.fromEntries(new Headers(headers)),
      redirect: "manual",
      signal: AbortSignal.timeout(timeoutMillis)
    })
    const text = await readText(
      reply,
      maxDocumentBytes,
      () => new Error(`the answer is longer than ${maxDocumentBytes} bytes (maxDocumentBytes)`)
    )
    if (reply.status >= 500 || reply.status === 429) throw new Error(`the answer has status ${reply.status}`)
    const document = reply.status === 200 ? parseObject(text) : undefined
    // A document has the address that it was fetched from.
    if (document?.["client_id"] !== address) return new Response(text === "" ? null : text, reply)
    const complete = withDefaults(document)
    // The copy of a client with a grant follows its document.
    if (await kept(address) !== undefined) await run(keep(address, complete))
    const cacheControl = reply.headers.get("cache-control")
    const expires = reply.headers.get("expires")
    return Response.json(complete, {
      headers: {
        ...cacheControl !== null && { "cache-control": cacheControl },
        ...expires !== null && { expires }
      }
    })
  }

  return {
    /** Replaces `fetch` in the engine. */
    fetch: async (url: unknown, init: Init = {}): Promise<Response> => {
      const address = String(url)
      try {
        return await request(address, init)
      } catch (error) {
        onProblem("client document", { url: address, error: error instanceof Error ? error.message : String(error) })
        // An outage of the address does not sign the client's users out.
        const document = await kept(address)
        if (document === undefined) throw error
        return Response.json(document)
      }
    },
    /** Keeps the document of a client that a person has agreed to. */
    remember: (clientId: string, document: Document): Effect.Effect<void, unknown> =>
      isDocumentId(clientId) ? keep(clientId, document) : Effect.void
  }
}
