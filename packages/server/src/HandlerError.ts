/**
 * The failures that handlers may have.
 */
import * as Context from "effect/Context"

/**
 * Any value with a `message`, as every tagged error of Effect has. The client, or its model, receives the message, so
 * do not put secrets into it. Turn a failure that the client must not see into a defect with `Effect.orDie`. An
 * `McpError` becomes a JSON-RPC error with its own code.
 *
 * @example
 * class SoldOut extends Data.TaggedError("SoldOut")<{ readonly message: string }> {}
 * const order = Tool.layer(Tool.make("order"), () =>
 *   Effect.fail(new SoldOut({ message: "No tea is left today. Ask again tomorrow" })))
 */
export interface HandlerError {
  readonly message: string
}

/**
 * An error of an async handler (`Tool.async`) whose message the client, or its model, receives. Write it as an
 * instruction that a model can act on. The messages of other errors may contain secrets, and stay in the log.
 *
 * @example
 * const order = Tool.async(Tool.make("order"), async () => {
 *   if (await isSoldOut()) throw new VisibleError("No tea is left today. Ask again tomorrow")
 *   return "Ordered"
 * })
 */
export class VisibleError extends Error {
  override readonly name = "VisibleError"
}

/** The environment variable that makes a process a development: `SKEIN_DEVELOPMENT=true`. */
const variable = "SKEIN_DEVELOPMENT"

/** Variables that test runners set in the processes of tests. A deployed server has none of them. */
const testRunners = ["VITEST", "JEST_WORKER_ID", "NODE_TEST_CONTEXT"]

const isDevelopment = (): boolean => {
  try {
    const { env = {} } = (globalThis as { readonly process?: Partial<NodeJS.Process> }).process ?? {}
    const value = env[variable]
    return value === undefined ? testRunners.some((name) => env[name] !== undefined) : value === "true"
  } catch {
    // Deno refuses the environment to programs that may not read it.
    return false
  }
}

/**
 * Whether clients see the message and the line of an unexpected error, such as a `TypeError` in the handler of a tool.
 * Otherwise they see a reference, under which the log has the cause: a message may contain secrets.
 *
 * `false` by default, except with `SKEIN_DEVELOPMENT=true` in the environment, which `skein dev` and `skein call` set for
 * a module of yours, and in the processes of Vitest, Jest and `node --test`.
 *
 * @example
 * // A test of the text that users see:
 * const server = McpServer.layer(options, tools).pipe(Layer.provide(Layer.succeed(HandlerError.Development, false)))
 */
export const Development: Context.Reference<boolean> = /* @__PURE__ */ Context.Reference(
  "@skein/server/HandlerError/Development",
  { defaultValue: isDevelopment }
)
