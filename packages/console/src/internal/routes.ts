/**
 * The paths of a console: the page, its events, and what a viewer can ask and do.
 */
import * as McpJson from "@skein/protocol/JsonRpc"
import { logValue } from "@skein/protocol/Text"
import * as Awaitable from "@skein/runtime/Awaitable"
import type { FindPrincipal, HttpAnswer, PageRequest } from "@skein/server/Http"
import { Refusal } from "@skein/server/Http"
import { isPrincipal, type Principal } from "@skein/server/Principal"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Source } from "../ConsoleSource.ts"
import type { Feed } from "./feed.ts"
import type { Act, Acted, Hello, Interrupt, Interrupted, More, Tree as TreeMessage } from "./messages.ts"
import { contentSecurityPolicy, pageHtml } from "./pageHtml.ts"
import { type Bounds, clip, rowOf, type Tree } from "./tree.ts"

/** The options of the routes. */
export interface RouteOptions {
  readonly feed: Feed
  readonly hello: Hello
  readonly bounds: Bounds
  readonly read: Effect.Effect<Tree>
  readonly sources: () => ReadonlyArray<Source>
  readonly protect: FindPrincipal | undefined
  /** Full origins that may use the console besides its own. */
  readonly allowedOrigins: ReadonlyArray<string>
}

// The largest body of a request, in bytes. The bodies of viewers are much smaller.
const maxBodyBytes = 4_096

const safe = { "cache-control": "no-store", "x-content-type-options": "nosniff" }
const json = { ...safe, "content-type": "application/json" }
const pageHeaders = {
  ...safe,
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": contentSecurityPolicy,
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin"
}

const refuse = (
  answer: HttpAnswer,
  status: number,
  message: string,
  headers?: { readonly [name: string]: string }
): void => answer.reply(status, { ...json, ...headers }, JSON.stringify({ error: message }))

/**
 * Whether a request comes from the console's own page, or from a program. Another page of this machine has an allowed
 * origin of the endpoint, but must not read the console, and must not interrupt anything.
 */
const isOwn = (request: PageRequest, path: string, allowedOrigins: ReadonlyArray<string>): boolean => {
  const origin = request.header("origin")
  const site = request.header("sec-fetch-site")
  if (origin !== undefined && allowedOrigins.includes(origin)) return true
  if (origin !== undefined) {
    const host = URL.canParse(origin) ? new URL(origin).host : undefined
    if (host === undefined || host !== request.header("host")?.toLowerCase()) return false
  }
  // "none": the user has typed the address, or opened a bookmark. A link on another page may open the page itself.
  return site === undefined || site === "same-origin" || site === "none" ||
    (path === "/" && request.method === "GET" && request.header("sec-fetch-mode") === "navigate")
}

/** The paths that change something. They take a body with POST. */
const changing: ReadonlySet<string> = new Set(["/interrupt", "/act"])

/** The viewer, for the log. */
const nameOf = (principal: Principal | undefined): string =>
  principal === undefined ? "an operator" : logValue(principal.id)

/** Makes the function that answers the requests below `base`, which is "" or a path without a slash at its end. */
export const makeRoutes = (base: string, options: RouteOptions) => {
  const { bounds, feed, hello } = options
  const find = (id: string): { readonly source: Source; readonly node: string } | undefined => {
    const at = id.indexOf(":")
    const source = options.sources().find(({ name }) => name === id.slice(0, at))
    return at === -1 || source === undefined ? undefined : { source, node: id.slice(at + 1) }
  }

  /** Answers with the JSON value of an effect. It is interrupted if the viewer leaves. */
  const reply = (answer: HttpAnswer, effect: Effect.Effect<unknown, unknown>): void => {
    const fiber = feed.fork(effect)
    fiber.addObserver((exit) => {
      if (answer.isClosed) return
      if (Exit.isSuccess(exit)) return answer.reply(200, json, JSON.stringify(exit.value))
      if (Cause.hasInterruptsOnly(exit.cause)) return refuse(answer, 503, "The console is shutting down")
      feed.fork(Effect.logError("console: failed to answer a viewer", exit.cause))
      refuse(answer, 500, "The request failed; the log of the server has the cause")
    })
    answer.onClose(() => fiber.interruptUnsafe())
  }

  const tree = Effect.map(options.read, ({ at, rows }): TreeMessage => ({ ...hello, at, rows: [...rows.values()] }))

  const more = (query: string): Effect.Effect<More, unknown> | undefined => {
    const params = new URLSearchParams(query)
    const found = find(params.get("parent") ?? "")
    if (found?.source.more === undefined) return undefined
    const { node: parent, source } = found
    const page = source.more!({
      parent,
      after: params.get("after") ?? undefined,
      limit: bounds.maxChildren,
      maxRows: bounds.maxChildren,
      showPayloads: bounds.showPayloads
    })
    return Effect.map(
      Effect.timeout(page, bounds.readTimeout),
      ({ after, nodes }): More => ({
        rows: nodes.slice(0, bounds.maxRows).map((node) => rowOf(source.name, node, bounds)),
        ...(after === undefined ? undefined : { after })
      })
    )
  }

  /** Runs a change that a viewer asks for, and logs it if it was done. */
  const change = <A extends Interrupted | Acted>(
    { id, instance }: Interrupt,
    run: (source: Source, node: string) => Effect.Effect<A, unknown> | undefined,
    log: string,
    principal: Principal | undefined
  ): Effect.Effect<A | { readonly outcome: "Restarted" | "NotFound" }, unknown> => {
    if (instance !== hello.instance) return Effect.succeed({ outcome: "Restarted" })
    const found = find(id)
    const changing = found && run(found.source, found.node)
    if (changing === undefined) return Effect.succeed({ outcome: "NotFound" })
    return Effect.tap(changing, ({ outcome }) =>
      outcome === "NotFound"
        ? Effect.void
        : Effect.logInfo(`console: ${log} ${logValue(id)}, asked by ${nameOf(principal)}`))
  }

  const interrupt = (body: Interrupt, principal: Principal | undefined): Effect.Effect<Interrupted, unknown> =>
    change(
      body,
      (source, node) =>
        source.interrupt &&
        Effect.map(
          source.interrupt(node, principal?.id),
          (isFound): Interrupted => ({ outcome: isFound ? "Interrupted" : "NotFound" })
        ),
      "interrupted",
      principal
    )

  const act = (body: Act, principal: Principal | undefined): Effect.Effect<Acted, unknown> =>
    change(
      body,
      (source, node) =>
        source.act && Effect.map(source.act(node, body.action, principal?.id), (result): Acted => ({
          outcome: result?.isDone === true ? "Done" : "NotFound",
          ...(result?.message === undefined ? undefined : { message: clip(result.message) })
        })),
      `ran the action ${logValue(body.action)} of`,
      principal
    )

  const receive = (
    request: PageRequest,
    answer: HttpAnswer,
    path: string,
    principal: Principal | undefined
  ): void => {
    // Without a preflight, a page of another origin can only send forms.
    if (!/^application\/json(?:\s*;|$)/i.test(request.header("content-type") ?? "")) {
      return refuse(answer, 415, "The body must be application/json")
    }
    request.read(maxBodyBytes, (body) => {
      if (answer.isClosed) return
      if ("fault" in body) {
        return refuse(answer, body.fault === "TooLarge" ? 413 : 400, `The body is not read: ${body.fault}`)
      }
      let message: unknown
      try {
        message = JSON.parse(body.text)
      } catch {
        return refuse(answer, 400, "The body is not JSON")
      }
      if (!McpJson.isObject(message)) return refuse(answer, 400, "The body is not a JSON object")
      const { action, id, instance } = message
      if (typeof id !== "string" || typeof instance !== "string") {
        return refuse(answer, 400, "The body needs the members id and instance")
      }
      if (path === "/interrupt") return reply(answer, interrupt({ id, instance }, principal))
      if (typeof action !== "string") return refuse(answer, 400, "The body needs the member action")
      reply(answer, act({ id, instance, action }, principal))
    })
  }

  const route = (request: PageRequest, answer: HttpAnswer, path: string, principal: Principal | undefined): void => {
    const method = changing.has(path) ? "POST" : "GET"
    if (request.method !== method) return refuse(answer, 405, `Method Not Allowed: use ${method}`, { allow: method })
    switch (path) {
      case "/":
        return answer.reply(200, pageHeaders, pageHtml)
      case "/events":
        return feed.add(answer)
          ? undefined
          : refuse(answer, 503, `Too many viewers are connected: ${feed.options.maxViewers}`, { "retry-after": "10" })
      case "/tree":
        return reply(answer, tree)
      case "/more": {
        const page = more(request.query ?? "")
        return page === undefined ? refuse(answer, 404, "There is no such row with further rows") : reply(answer, page)
      }
      default:
        return receive(request, answer, path, principal)
    }
  }

  /** Finds the principal of a request. A protected console has no anonymous viewers. */
  const authenticate = (
    protect: FindPrincipal,
    request: PageRequest,
    answer: HttpAnswer,
    then: (principal: Principal) => void
  ): void => {
    const refused = (error: unknown): void => {
      if (answer.isClosed) return
      if (error instanceof Refusal && error.status >= 400 && error.status <= 599) {
        return refuse(answer, error.status, error.message, error.headers)
      }
      feed.fork(Effect.logError("console: failed to find the principal of a viewer", error))
      refuse(answer, 500, "The request failed; the log of the server has the cause")
    }
    const found = (principal: Principal | undefined): void => {
      if (principal === undefined) return refuse(answer, 401, "Unauthorized: the console needs credentials")
      if (isPrincipal(principal)) then(principal)
      else refused("the function did not return a principal: an object with a non-empty string id")
    }
    let effect: Principal | undefined | Effect.Effect<Principal | undefined, unknown>
    try {
      effect = Awaitable.settle(protect(request as Parameters<FindPrincipal>[0], answer))
    } catch (error) {
      return refused(error)
    }
    if (!Effect.isEffect(effect)) return found(effect)
    const fiber = feed.fork(effect)
    fiber.addObserver((exit) => {
      if (Exit.isSuccess(exit)) return found(exit.value)
      const failure = exit.cause.reasons.find(Cause.isFailReason)
      refused(failure === undefined ? exit.cause : failure.error)
    })
    answer.onClose(() => fiber.interruptUnsafe())
  }

  const paths = ["/", "/events", "/tree", "/more", ...changing]

  const handle = (request: PageRequest, answer: HttpAnswer): boolean => {
    if (base !== "" && request.path === base) {
      // The addresses in the page are relative to the folder.
      answer.reply(308, { ...safe, location: `${base}/` }, "")
      return true
    }
    const path = request.path.startsWith(`${base}/`) ? request.path.slice(base.length) : ""
    if (!paths.includes(path)) return false
    if (!isOwn(request, path, options.allowedOrigins)) {
      refuse(answer, 403, "Forbidden: the console is for its own page and for programs (allowedOrigins)")
      return true
    }
    if (options.protect === undefined) route(request, answer, path, undefined)
    else authenticate(options.protect, request, answer, (principal) => route(request, answer, path, principal))
    return true
  }

  return { handle, paths: [...(base === "" ? [] : [base]), ...paths.map((path) => `${base}${path}`)] }
}
