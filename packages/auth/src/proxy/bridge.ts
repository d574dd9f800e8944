/**
 * Connects the pages of an endpoint with `oidc-provider`, which expects the requests and responses of `node:http`.
 *
 * The engine's cookies of one sign-in travel in one cookie of this proxy, encrypted: a response of an adapter has one
 * `Set-Cookie` header, and the engine cannot give its cookies the prefix `__Host-`, which ties a cookie to this host
 * alone.
 */
import type { HttpAnswer, PageRequest } from "@skein/server/Http"
import * as Effect from "effect/Effect"
import { IncomingMessage, type OutgoingHttpHeader, ServerResponse } from "node:http"
import { Socket } from "node:net"
import type { Sealing } from "./sealing.ts"

/** The largest body of a request: a registration, a form, a token request. In bytes. */
export const maxRequestBytes = 65_536

/**
 * How many sign-ins a browser can have in progress, each with a cookie of about 400 bytes. The cookies of 39 are longer than
 * what Node reads of the headers of a request, and the browser could not use the server until they expire.
 */
const maxSignIns = 16

/** A response of the engine that is complete. */
interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, OutgoingHttpHeader>>
  readonly body: string
}

/** Makes a response that is collected instead of sent. */
const collect = (request: IncomingMessage, done: (reply: Reply) => void): ServerResponse => {
  const response = new ServerResponse(request)
  const chunks: Array<Buffer> = []
  const add = (chunk: unknown): void => {
    if (typeof chunk === "string" || chunk instanceof Uint8Array) chunks.push(Buffer.from(chunk as string))
  }
  let ended = false
  return Object.assign(response, {
    writeHead: (status: number, ...rest: ReadonlyArray<unknown>) => {
      response.statusCode = status
      const headers = rest.find((one): one is Record<string, string> => typeof one === "object" && one !== null)
      for (const [name, value] of Object.entries(headers ?? {})) response.setHeader(name, value)
      return response
    },
    write: (chunk: unknown) => {
      add(chunk)
      return true
    },
    end: (chunk?: unknown) => {
      if (ended) return response
      ended = true
      add(chunk)
      done({
        status: response.statusCode,
        headers: response.getHeaders() as Reply["headers"],
        body: Buffer.concat(chunks).toString()
      })
      return response
    }
  })
}

/** The headers that the engine reads. */
const forwarded = [
  "accept",
  "authorization",
  "content-type",
  "dpop",
  "origin",
  "access-control-request-method",
  "access-control-request-headers"
]

const makeRequest = (
  page: PageRequest,
  origin: URL,
  cookie: string,
  body: string
): IncomingMessage => {
  const socket = new Socket()
  Object.assign(socket, { encrypted: origin.protocol === "https:" })
  const request = new IncomingMessage(socket)
  request.method = page.method
  request.url = page.query === undefined ? page.path : `${page.path}?${page.query}`
  // The engine makes addresses of it. The endpoint has checked the header of the request.
  request.headers = { host: origin.host }
  for (const name of forwarded) {
    const value = page.header(name)
    if (value !== undefined) request.headers[name] = value
  }
  if (cookie !== "") request.headers.cookie = cookie
  if (body !== "") request.headers["content-length"] = String(Buffer.byteLength(body))
  request.push(body)
  request.push(null)
  return request
}

export interface BridgeOptions {
  readonly origin: URL
  readonly sealing: Sealing
  /** The prefix of the engine's cookies. */
  readonly cookiePrefix: string
  readonly handle: (request: IncomingMessage, response: ServerResponse, page: PageRequest) => void
  readonly onProblem: (event: string, detail: Readonly<Record<string, unknown>>) => void
}

/** The id of the sign-in that a path belongs to: `/interaction/<id>` or `/auth/<id>`. */
const signInOf = (path: string): string | undefined => /^\/(?:interaction|auth)\/([A-Za-z0-9_-]{1,64})$/.exec(path)?.[1]

/** Makes the function that answers a page by the engine. `signInId` finds the sign-in of a callback. */
export const makeBridge = ({ cookiePrefix, handle, onProblem, origin, sealing }: BridgeOptions) => {
  const secure = origin.protocol === "https:"
  const nameOf = (id: string): string => `${secure ? "__Host-" : ""}${cookiePrefix}${id}`
  const attributes = `; Path=/; HttpOnly; SameSite=Lax${secure ? "; Secure" : ""}`

  /** The engine's cookies of a sign-in, or "" for another browser. */
  const cookiesOf = async (page: PageRequest, id: string | undefined): Promise<string> => {
    if (id === undefined) return ""
    const name = nameOf(id)
    for (const pair of (page.header("cookie") ?? "").split(/; */)) {
      if (pair.startsWith(`${name}=`)) {
        return await Effect.runPromise(sealing.decrypt(pair.slice(name.length + 1), name)) ?? ""
      }
    }
    return ""
  }

  /** The oldest sign-in of a browser that begins one more than `maxSignIns`. Browsers send the oldest cookie first. */
  const surplusOf = (page: PageRequest): string | undefined => {
    if (page.path !== "/auth" || page.method !== "GET") return undefined
    const names = (page.header("cookie") ?? "").split(/; */).flatMap((pair) =>
      pair.startsWith(nameOf("")) ? pair.slice(0, pair.indexOf("=")) : []
    )
    return names.length < maxSignIns ? undefined : names[0]
  }

  /** One cookie of what the engine sets, or `undefined`. The engine names the sign-in in the address that it leads to. */
  const cookieFor = async (reply: Reply, id: string | undefined): Promise<string | undefined> => {
    const lines = [reply.headers["set-cookie"] ?? []].flat().map(String)
    const kept = lines.filter((line) =>
      !/expires=Thu, 01 Jan 1970/i.test(line) && !line.startsWith(`${cookiePrefix}session`)
    )
      .map((line) => line.split(";")[0]!)
    const location = reply.headers["location"]
    const begun = typeof location === "string" ? signInOf(new URL(location, origin).pathname) : undefined
    if (kept.length > 0 && begun !== undefined && begun !== id) {
      const name = nameOf(begun)
      return `${name}=${await Effect.runPromise(sealing.encrypt(kept.join("; "), name))}; Max-Age=600${attributes}`
    }
    // The sign-in is over: the engine has cleared its cookies.
    return kept.length === 0 && lines.length > 0 && id !== undefined
      ? `${nameOf(id)}=; Max-Age=0${attributes}`
      : undefined
  }

  const send = async (reply: Reply, answer: HttpAnswer, id: string | undefined): Promise<void> => {
    const headers: Record<string, string> = {}
    for (const [name, value] of Object.entries(reply.headers)) {
      if (name !== "set-cookie" && name !== "content-length" && value !== undefined) {
        headers[name] = [value].flat().join(", ")
      }
    }
    const cookie = await cookieFor(reply, id)
    if (cookie !== undefined) headers["set-cookie"] = cookie
    answer.reply(reply.status, headers, reply.body)
  }

  return {
    /** Answers a request by the engine, or by `pages` of the proxy. */
    answer: (page: PageRequest, answer: HttpAnswer, signInId = signInOf(page.path)): void => {
      const surplus = surplusOf(page)
      if (surplus !== undefined) {
        // An answer sets one cookie: this one removes the oldest, and the browser sends the same request again.
        const location = `${page.path}?${page.query ?? ""}`
        return answer.reply(303, { location, "set-cookie": `${surplus}=; Max-Age=0${attributes}` }, "")
      }
      const failed = (error: unknown): void => {
        onProblem("page", { error: String(error) })
        answer.reply(500, {}, "")
      }
      const begin = async (body: string): Promise<void> => {
        const request = makeRequest(page, origin, await cookiesOf(page, signInId), body)
        const response = collect(request, (reply) => void send(reply, answer, signInId).catch(failed))
        handle(request, response, page)
      }
      const start = (body: string): void => void begin(body).catch(failed)
      if (page.method !== "POST") return start("")
      page.read(maxRequestBytes, (body) => {
        if ("text" in body) start(body.text)
        else if (body.fault !== "Aborted") answer.reply(413, { connection: "close" }, "")
      })
    }
  }
}
