/**
 * The protection of an endpoint: who sends a request, and the pages beside the endpoint.
 */
import * as PrintableError from "@skein/protocol/PrintableError"
import type { Principal } from "@skein/runtime/Connection"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import { isPrincipal } from "../../../Principal.ts"
import { type Body, DelegatedRequest, type Headers, type HttpAnswer, type HttpRequest } from "../messages/adapter.ts"
import type { IncomingBodies } from "../limits/incomingBodies.ts"

/**
 * Refuses an HTTP request: a function that finds the principal of a request fails with it, or throws it. The response
 * has this status, from 400 to 599, these headers, and a JSON-RPC error with this message as its body. Any other failure
 * of the function is logged, and the response is 500.
 *
 * @example
 * Effect.fail(new Http.Refusal({ status: 401, message: "Unauthorized", headers: { "www-authenticate": "Bearer" } }))
 */
export class Refusal extends PrintableError.tagged("Refusal")<{
  readonly status: number
  readonly headers?: Headers | undefined
}> {}

/**
 * Finds the principal of a request, synchronously, by a promise or by an effect: `undefined` for an anonymous caller. It
 * fails with `Refusal`, throws it or rejects with it to refuse the request. Any other error, and a value that is not a
 * principal (`InvalidPrincipal`), is logged, and the response is 500. The effect is interrupted when the client
 * disconnects. The function may add headers to the answer, such as a nonce for the next request.
 */
export type FindPrincipal<Request = HttpRequest> = (
  request: Request,
  answer: Pick<HttpAnswer, "addHeaders">
) => Principal | undefined | PromiseLike<Principal | undefined> | Effect.Effect<Principal | undefined, unknown>

/**
 * The application supplied a value as the principal of a request that is not one: `undefined`, for an anonymous caller, or
 * an object with a non-empty string `id`. The request is answered with 500, and the error is logged.
 */
export class InvalidPrincipal extends PrintableError.tagged("InvalidPrincipal") {}

/** Returns the error for a value that the application supplies as a principal; `undefined` if the value is valid. */
export const principalProblem = (value: unknown): InvalidPrincipal | undefined => {
  if (value === undefined || isPrincipal(value)) return undefined
  if (Predicate.isPromiseLike(value)) {
    // A rejection without a handler would end the process.
    value.then(undefined, () => {})
  }
  const found = Predicate.isPromiseLike(value)
    ? "a promise"
    : Effect.isEffect(value)
    ? "an effect"
    : typeof value === "object" && value !== null
    ? "an object without one"
    : value === null
    ? "null"
    : `a ${typeof value}`
  return new InvalidPrincipal({
    message: `A principal must be undefined or an object with a non-empty string id; found ${found}`
  })
}

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
   * The headers with credentials, in lower case, in addition to `authorization`, `cookie`, `dpop` and
   * `proxy-authorization`. Handlers and middleware cannot read them.
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

  override get headers(): Headers | undefined {
    const headers = super.headers
    return headers && Object.fromEntries(Object.entries(headers).filter(([name]) => !this.#names.has(name)))
  }
}

/** Where handlers may read credentials. */
interface Readers {
  readonly protection?: Protection | undefined
  readonly readableCredentials?: ReadonlyArray<string> | undefined
}

/**
 * The names of the headers that are withheld from the handlers of an authenticated request. Those that a protection reads
 * cannot be made readable: its tokens are for this server only.
 */
export const credentialHeaders = ({ protection, readableCredentials = [] }: Readers): ReadonlySet<string> => {
  const withheld = new Set(["authorization", "cookie", "dpop", "proxy-authorization"])
  for (const name of readableCredentials) withheld.delete(name.toLowerCase())
  if (protection !== undefined) {
    for (const name of ["authorization", "dpop", ...protection.credentialHeaders ?? []]) {
      withheld.add(name.toLowerCase())
    }
  }
  return withheld
}

/** Whether handlers cannot read the credentials of a request: the server has authenticated it, or would have to. */
export const withholds = ({ protection }: Readers, principal: Principal | undefined): boolean =>
  protection !== undefined || principal !== undefined
