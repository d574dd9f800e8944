/**
 * The metadata of a protected resource, and the pages of a protection (RFC 9728, 2 and 3).
 */
import type { HttpAnswer, PageRequest } from "@skein/server/Http"
import { isSafe } from "./tokens/fetchDocument.ts"

const wellKnown = "/.well-known/oauth-protected-resource"

// The parts of the resource as it was written: a `URL` would normalize them.
const parts = /^(https?:\/\/[^/?#]+)([^?#]*)(\?[^#]*)?$/i

/** Where the metadata of a resource is. */
export interface MetadataAddress {
  /** The address in challenges. */
  readonly url: string
  /** The paths of the page: the one of the address, and the root for clients that look there. */
  readonly paths: ReadonlyArray<string>
}

/**
 * The address of the metadata: the well-known path is inserted between the host and the path of the resource, "by
 * inserting [it] between the host component and the path and/or query components" (RFC 9728, 3.1). Throws if the resource
 * is not an https address without a fragment (RFC 9728, 1.2). Its metadata and its tokens could be read and replaced on
 * the way.
 */
export const addressOf = (resource: string, allowHttp: boolean): MetadataAddress => {
  const [, origin, path = "", query = ""] = parts.exec(resource) ?? []
  if (origin === undefined || !URL.canParse(resource)) {
    throw new Error(`Protect: the resource is not an http or https address without a fragment: ${resource}`)
  }
  if (!isSafe(resource, allowHttp)) {
    throw new Error(`Protect: the resource must be an https address, or http on loopback (see allowHttp): ${resource}`)
  }
  // "Any terminating slash (/) following the host component MUST be removed" (RFC 9728, 3.1).
  const at = path === "/" ? wellKnown : `${wellKnown}${path}`
  return { url: `${origin}${at}${query}`, paths: [...new Set([at, wellKnown])] }
}

/** Answers a request for a page: `GET`, or `HEAD`, whose body the adapter leaves out. */
export type AnswerPage = (answer: HttpAnswer) => void

const shared = { "access-control-allow-origin": "*" }

/** The headers of metadata. Web pages of every origin may read it. */
export const metadataHeaders = {
  ...shared,
  "content-type": "application/json",
  "cache-control": "public, max-age=300"
}

/**
 * Makes the function that answers requests for pages, each at its path. "A successful response MUST use the 200 OK HTTP
 * status code and return a JSON object using the application/json content type" (RFC 9728, 3.2).
 */
export const pagesOf =
  (pages: ReadonlyMap<string, AnswerPage>) => ({ method, path }: PageRequest, answer: HttpAnswer): boolean => {
    const page = pages.get(path)
    if (page === undefined) return false
    if (method === "GET" || method === "HEAD") page(answer)
    else if (method === "OPTIONS") {
      const allowed = {
        ...shared,
        "access-control-allow-methods": "GET, HEAD",
        "access-control-allow-headers": "*",
        "access-control-max-age": "7200"
      }
      answer.reply(204, allowed, "")
    } else answer.reply(405, { ...shared, allow: "GET, HEAD, OPTIONS" }, "")
    return true
  }

/** The page of a document that does not change. */
export const pageOf = (document: object): AnswerPage => {
  const body = JSON.stringify(document)
  return (answer) => answer.reply(200, metadataHeaders, body)
}
