/**
 * The protection of an endpoint: who sends a request, and the pages beside the endpoint.
 */
import type { Principal } from "@skein/runtime/Connection"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import { type Body, DelegatedRequest, type Headers, type HttpAnswer, type HttpRequest } from "./adapter.ts"
import type { IncomingBodies } from "./incomingBodies.ts"

/**
 * Refuses an HTTP request: a function that finds the principal of a request fails with it, or throws it. The response
 * has this status, from 400 to 599, these headers, and a JSON-RPC error with this message as its body. Any other failure
 * of the function is logged, and the response is 500.
 *
 * @example
 * Effect.fail(new Http.Refusal({ status: 401, message: "Unauthorized", headers: { "www-authenticate": "Bearer" } }))
 */
export class Refusal extends Data.TaggedError("Refusal")<{
  readonly status: number
  readonly message: string
  readonly headers?: Headers | undefined
}> {}

/**
 * Finds the principal of a request, synchronously or by an effect: `undefined` for an anonymous caller. It fails with
 * `Refusal` to refuse the request. The effect is interrupted when the client disconnects. It may add headers to the
 * answer, such as a nonce for the next request.
 */
export type FindPrincipal<Request = HttpRequest> = (
  request: Request,
  answer: Pick<HttpAnswer, "addHeaders">
) => Principal | undefined | Effect.Effect<Principal | undefined, unknown>

/** A request for a page. Its body is counted among the retained bytes of the endpoint while it is read. */
export interface PageRequest extends Omit<HttpRequest, "read"> {
  /** Reads the body as UTF-8, up to `limit` bytes; called once. See `HttpRequest.read`. */
  readonly read: (limit: number, done: (body: Body) => void) => void
}

/** Pages beside an endpoint, or on a port of their own: the value of the option `pages`, and of `NodePages.serve`. */
export interface Pages {
  /**
   * Answers a request for one of the pages, and returns whether the request is for one. It is called after the checks of
   * Host and Origin. It may answer later. It authenticates the request: the `protection` of the endpoint does not.
   */
  readonly handle: (request: PageRequest, answer: HttpAnswer) => boolean
  /**
   * The paths of the pages, for routers: see `Http.paths`. A path that ends with `/*` stands for all paths below it.
   */
  readonly paths: ReadonlyArray<string>
}

/** Protects an endpoint: the value of the option `protection`. `Protect.make` of `@skein/auth` makes one. */
export interface Protection {
  /**
   * Finds the principal of each request that the application passes without one. It is called after the checks of Host,
   * Origin, path and method and before the body is read, for the requests of all revisions and of HTTP+SSE.
   */
  readonly identify: FindPrincipal
  /**
   * Answers requests for the pages beside the endpoint, such as `/.well-known/oauth-protected-resource`, and returns
   * whether the request is for one. It is called after the check of Host and before that of Origin, since metadata is
   * for every origin, and not for the path of the endpoint. It may answer later.
   */
  readonly pages?: ((request: PageRequest, answer: HttpAnswer) => boolean) | undefined
  /**
   * The paths of the pages, for routers: see `Http.paths`. A path that ends with `/*` stands for all paths below it.
   * `HttpRoutes` adds a route for each.
   */
  readonly paths?: ReadonlyArray<string> | undefined
  /**
   * The headers with credentials, in lower case, in addition to `authorization` and `dpop`. Handlers and middleware
   * cannot read them.
   */
  readonly credentialHeaders?: ReadonlyArray<string> | undefined
}

/** A request as a page sees it. */
export class ForPage extends DelegatedRequest implements PageRequest {
  readonly #request: HttpRequest
  readonly #bodies: IncomingBodies

  constructor(request: HttpRequest, bodies: IncomingBodies) {
    super(request)
    this.#request = request
    this.#bodies = bodies
  }

  override read(limit: number, done: (body: Body) => void): void {
    this.#request.read(limit, (body) => {
      this.#bodies.received(this.#request)
      done(body)
    }, this.#bodies)
  }
}

/** A request as handlers see it: its credentials are withheld, so that no handler passes them on. */
export class WithheldRequest extends DelegatedRequest {
  readonly #names: ReadonlySet<string>

  constructor(request: HttpRequest, names: ReadonlySet<string>) {
    super(request)
    this.#names = names
  }

  override header(name: string): string | undefined {
    return this.#names.has(name) ? undefined : super.header(name)
  }
}

/** The names of the headers that are withheld from handlers. */
export const credentialHeaders = ({ credentialHeaders = [] }: Protection): ReadonlySet<string> =>
  new Set(["authorization", "dpop", ...credentialHeaders.map((name) => name.toLowerCase())])
