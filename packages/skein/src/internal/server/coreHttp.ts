/**
 * Turns the options of HTTP into those of `@skein/server`.
 *
 * Most members are the same. `cors` and `legacySse` are options of modules there, and `onListening` is an effect.
 */
import type * as NodeHttp from "@skein/server/NodeHttp"
import * as Cors from "@skein/server/Cors"
import * as LegacySse from "@skein/server/LegacySse"
import * as Effect from "effect/Effect"
import type { EndpointOptions, HttpMainOptions } from "./httpOptions.ts"

/** The options of an endpoint with the parts that `@skein/server` makes itself. */
export const endpointOptions = <O extends EndpointOptions>({ cors, legacySse, serverCard, ...rest }: O) => ({
  ...rest,
  ...(cors === undefined || cors === false ? undefined : { cors: Cors.make(cors === true ? {} : cors) }),
  ...(legacySse === undefined || legacySse === false
    ? undefined
    : { legacySse: LegacySse.make(legacySse === true ? {} : legacySse) }),
  ...(serverCard === undefined ? undefined : {
    serverCard: Effect.flatMap(Effect.promise(() => import("@skein/server/ServerCard")), ({ make }) => make(serverCard))
  })
})

/** Answers the requests for a path: a function of web standards. */
export type RouteHandler = (request: Request) => Response | Promise<Response>

/** The handlers of routes, by path and method. */
export class RouteTable {
  readonly #paths = new Map<`/${string}`, Map<string, RouteHandler>>()
  readonly #metrics = new Map<`/${string}`, () => string | Promise<string>>()
  #hasStarted = false

  /**
   * Adds a handler. Throws for a path without a slash at its start, for a method that the path has already, and after the start:
   * the server would not answer it.
   */
  add(method: string, path: `/${string}`, handler: RouteHandler): void {
    if (this.#hasStarted) throw new Error(`the server has started: add the route ${method} ${path} before`)
    if (!path.startsWith("/")) throw new TypeError(`the path of a route begins with "/": ${path}`)
    const methods = this.#paths.get(path) ?? new Map<string, RouteHandler>()
    if (methods.has(method)) throw new Error(`there is a route ${method} ${path} already`)
    this.#paths.set(path, methods.set(method, handler))
  }

  /** Adds a route with metrics in the text format of Prometheus. `read` returns those of this process. */
  addMetrics(path: `/${string}`, read: () => string | Promise<string>): void {
    // The start replaces the handler.
    this.add("GET", path, () => new Response(null, { status: 503 }))
    this.#metrics.set(path, read)
  }

  /** The option `routes` of `NodeHttp`. A server without routes does not load the code of routes. */
  options(): Pick<NodeHttp.Options, "routes"> {
    this.#hasStarted = true
    if (this.#paths.size === 0) return {}
    const load = Effect.promise(() => import("@skein/server/NodeRoutes"))
    return {
      routes: {
        start: (options, services) =>
          Effect.gen({ self: this }, function*() {
            const { handlers } = yield* load
            if (this.#metrics.size > 0) yield* joinMetrics(this.#metrics, this.#paths)
            const byPath = Object.fromEntries([...this.#paths].map(([path, methods]) => [path, handlerOf(methods)]))
            return yield* handlers(byPath).start(options, services)
          })
      }
    }
  }
}

/** Replaces the handlers of metrics by those for all workers. */
const joinMetrics = Effect.fnUntraced(function*(
  metrics: ReadonlyMap<`/${string}`, () => string | Promise<string>>,
  paths: ReadonlyMap<`/${string}`, Map<string, RouteHandler>>
) {
  const { contentType, joined } = yield* Effect.promise(() => import("@skein/server/Metrics"))
  for (const [path, read] of metrics) {
    const all = yield* joined(path, Effect.promise(async () => read()))
    paths.get(path)!.set("GET", async () => {
      const text = await Effect.runPromise(all)
      return text === undefined
        ? new Response("the workers do not answer", { status: 503 })
        : new Response(text, { headers: { "content-type": contentType } })
    })
  }
})

/** The handler of a path. A `HEAD` is answered as its `GET`, without the body. */
const handlerOf = (methods: ReadonlyMap<string, RouteHandler>): RouteHandler => async (request) => {
  const { method } = request
  const handler = methods.get(method) ?? (method === "HEAD" ? methods.get("GET") : undefined) ?? methods.get("*")
  if (handler !== undefined) return handler(request)
  return new Response("Method Not Allowed", { status: 405, headers: { allow: [...methods.keys()].join(", ") } })
}

/** The options of a process. */
export const mainOptions = ({ onListening, ...options }: HttpMainOptions): NodeHttp.MainOptions => ({
  ...endpointOptions(options) as object,
  ...(onListening === undefined
    ? undefined
    : { onListening: (at) => Effect.promise(async () => onListening({ host: at.host, port: at.port, url: at.url })) })
})
