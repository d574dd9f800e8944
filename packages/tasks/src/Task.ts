/**
 * Tasks: tools whose handler is a durable execution.
 *
 * A task is defined as a tool is, with what holds for its tasks besides. Its body is written once, and says what must not run
 * twice: everything that stands between the steps (`Step.run`) runs again when the task is picked up, by this process or by
 * another one, and gets from the steps what they gave the first time. `Elicitation`, `Sampling` and `Roots` ask as they do in any
 * tool, here through the task, and their answers are remembered too. What a body needs of the world it must get from steps: the
 * time, a random number, what a service says now.
 *
 * @example
 * const bake = Task.make("bake", {
 *   description: "Bakes cakes",
 *   input: { cakes: Schema.Int },
 *   ttl: "3 days"
 * })
 *
 * const baking = Task.layer(bake, ({ cakes }) =>
 *   Effect.gen(function*() {
 *     yield* Step.run("flour", { error: NoFlour, retry: eightTimes }, (key) => orderFlour(cakes, key))
 *     yield* Task.say("The dough rests")
 *     yield* Step.sleep("rest", "12 hours")
 *     const { sure } = yield* Elicitation.accepted(Elicitation.form("Bake now?", { sure: Schema.Boolean }))
 *     return sure ? `${cakes} cakes` : "Nothing"
 *   }))
 */
import { McpRequest } from "@skein/runtime/RequestContext"
import { Catalog, type HandlerServices } from "@skein/server/Catalog"
import type { DefinitionError } from "@skein/server/DefinitionError"
import type { HandlerError } from "@skein/server/HandlerError"
import * as Extension from "@skein/server/Extension"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { CurrentTask } from "./CurrentTask.ts"
import { TaskExchange } from "./internal/engine/exchange.ts"
import { faceOf } from "./internal/protocol/taskService.ts"
import { type Cell, preparedFor, Preparing } from "./internal/protocol/beforeTask.ts"
import { Durable, Prepares, TaskPolicyAnnotation, type ToolPolicyOptions } from "./internal/protocol/policy.ts"

export { id, say } from "./CurrentTask.ts"
export type { ToolPolicyOptions as Terms } from "./internal/protocol/policy.ts"

/** What describes a task: a tool, and what holds for its tasks. */
export interface Options<Input extends Tool.AnySchema, Output extends Tool.AnySchema>
  extends Omit<Tool.Options<Input, Output>, "execution">, ToolPolicyOptions
{
  /**
   * Whether a client may see a task of it.
   *
   * - `optional`, the default: in 2025-11-25 where the client asks for one, since 2026-07-28 to every client that has declared the
   *   extension, unless `decide` says no. Other calls wait for the result.
   * - `required`: a call that may be answered with no task is refused, with `-32601` in 2025-11-25 and `-32021` since 2026-07-28.
   *   Clients of older revisions, who cannot know, wait for the result.
   * - `forbidden`: every call waits for the result. It is a durable execution all the same.
   *
   * A call that waits asks the task's questions as its own, and tells its progress. When the client cancels the call, or its
   * connection is lost, the task is cancelled too. When the server stops it is not: it goes on when a process is there again, and its
   * result is kept for its `ttl`, though the client that waited has nothing to ask for it by. A client of 2026-07-28 that is asked,
   * and never comes back, leaves its task to its `ttl` as well.
   */
  readonly taskSupport?: "forbidden" | "optional" | "required" | undefined
}

/** A task's definition: a tool's. */
export interface Task<Name extends string, Input, Output> extends Tool.Tool<Name, Input, Output> {}

/** Defines a task. */
export const make = <
  const Name extends string,
  Input extends Tool.AnySchema = {},
  Output extends Tool.AnySchema = never
>(
  name: Name,
  options: Options<Input, Output> = {}
): Task<Name, Tool.InputOf<Input>, [Output] extends [never] ? never : Tool.OutputOf<Output>> => {
  const {
    inputFrom: asks,
    asTask: decide,
    metadata,
    limits,
    maxTtl,
    owner,
    pollInterval,
    pool,
    taskSupport = "optional",
    ttl,
    ...tool
  } = options
  return Tool.make<Name, Input, Output>(name, {
    ...tool as Tool.Options<Input, Output>,
    execution: { taskSupport },
    metadata: policy({ inputFrom: asks, asTask: decide, limits, maxTtl, owner, pollInterval, pool, ttl }, metadata)
  })
}

/**
 * What holds for the tasks of a plain tool, one whose handler is not made of steps, for its `metadata`.
 *
 * @example
 * const slow = Tool.make("slow", { execution: { taskSupport: "optional" }, metadata: Task.terms({ ttl: "1 hour" }) })
 */
export const policy = (
  terms: ToolPolicyOptions,
  metadata: Context.Context<never> = Context.empty()
): Context.Context<never> => Context.add(metadata, TaskPolicyAnnotation, terms)

/** What a body gives: an effect with the services of its task, beside those that the layer captures. */
type Body<Input, Output, E, R> = (input: Input) => Effect.Effect<Tool.Answer<Output>, E, R>

/** What the layer of a body needs. */
type Needed<R> = HandlerServices<Exclude<R, CurrentTask>>

/**
 * Offers a task with its body. `Tasks.layer` has to be among the definitions of the server: without it the server does not start,
 * by a defect.
 *
 * - What the body answers is the result of the call, as it is of a tool; what it fails with becomes a result with `isError`,
 *   whose text is the error's `message`. Either way the task is `completed`; in 2025-11-25 it is `failed` with `isError`.
 * - An `McpError` becomes a JSON-RPC error, and the task is `failed`. A defect does so too, as `-32603` and a reference.
 * - When a task is cancelled, by its client or because its time is over, the body is interrupted, and what it has said to undo is
 *   undone. When the process stops it is interrupted too, nothing is undone, and the body goes on when a process is there again.
 * - The request that the body finds (`McpRequest`) is the task's own: what is left of the call is who made it, by the principal's
 *   id, what the client can do, and the arguments.
 */
export const layer = <Name extends string, Input, Output, E extends HandlerError = never, R = never>(
  task: Tool.Tool<Name, Input, Output>,
  body: Body<Input, NoInfer<Output>, E, R>
): Layer.Layer<never, DefinitionError, Catalog | Needed<R>> =>
  Layer.merge(Tool.layer(durable(task), running(body)), looked)

/**
 * Offers a task with its body until the scope closes, while the server runs. Fails as `layer` does; in a server without `Tasks.layer`
 * a call is a defect.
 */
export const add = <Name extends string, Input, Output, E extends HandlerError = never, R = never>(
  task: Tool.Tool<Name, Input, Output>,
  body: Body<Input, NoInfer<Output>, E, R>
): Effect.Effect<void, DefinitionError, Scope.Scope | Catalog | Needed<R>> => Tool.add(durable(task), running(body))

/** The same in the stead of the tool that has the name, which is back when the scope closes. Its tasks go on with this body. */
export const replace = <Name extends string, Input, Output, E extends HandlerError = never, R = never>(
  task: Tool.Tool<Name, Input, Output>,
  body: Body<Input, NoInfer<Output>, E, R>
): Effect.Effect<void, DefinitionError, Scope.Scope | Catalog | Needed<R>> => Tool.replace(durable(task), running(body))

/**
 * Offers a task that is prepared in the call: before it begins, and while the client is there. What is prepared is handed to the
 * body, and kept, as JSON by its schema, with the arguments.
 *
 * - This is the place to look at the request itself: the claims of its principal, or its credentials, are not the task's.
 * - What it asks (`Elicitation`, …) is asked through the call, also of a client that gets a task then: "servers … SHOULD resolve all
 *   MRTR exchanges synchronously before responding with a `CreateTaskResult`" (the extension, "Task Creation").
 * - It is a handler like that of a tool: nothing of it is durable, and since 2026-07-28 it runs again with each of its answers.
 * - Where it fails there is no task: the call is answered with what it fails with, as of a tool; in 2025-11-25, where a client that
 *   asks for a task cannot be answered with a result, with `-32602`.
 *
 * @example
 * const order = Task.layerPrepared(
 *   Task.make("order", { input: { cakes: Schema.Int } }),
 *   Schema.String,
 *   () => Effect.flatMap(McpRequest, ({ caller }) => accountOf(caller.principal)),
 *   ({ cakes }, account) => bakeFor(account, cakes)
 * )
 */
export const layerPrepared = <
  Name extends string,
  Input,
  Output,
  P,
  E1 extends HandlerError = never,
  R1 = never,
  E2 extends HandlerError = never,
  R2 = never
>(
  task: Tool.Tool<Name, Input, Output>,
  schema: Schema.ConstraintCodec<P, unknown>,
  prepare: (input: Input) => Effect.Effect<P, E1, R1>,
  body: (input: Input, prepared: P) => Effect.Effect<Tool.Answer<NoInfer<Output>>, E2, R2>
): Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R1> | Needed<R2>> => {
  const codec = Schema.toCodecJson(schema)
  const encode = Schema.encodeUnknownEffect(codec)
  const decode = Schema.decodeUnknownEffect(codec)
  const run = running((input: Input) =>
    Effect.flatMap(McpRequest, (exchange) =>
      // Left by another version of the handler, it may be nothing that this one reads.
      Effect.flatMap(Effect.orDie(decode(preparedFor(exchange))), (prepared) => body(input, prepared)))
  )
  const { name, options, ...shapes } = durable(task)
  const metadata = Context.add(options.metadata ?? Context.empty(), Prepares, true)
  type Answered = Effect.Effect<Tool.Answer<Output>, E1 | E2, R1 | Exclude<R2, CurrentTask> | McpRequest>
  const prepared = (input: Input, cell: Cell): Answered =>
    Effect.flatMap(prepare(input), (prepared) =>
      Effect.map(Effect.orDie(encode(prepared)), (json) => {
        cell.value = { json }
        // Nobody is answered with this: the task begins.
        return Tool.result({ isError: true }) as Tool.Answer<Output>
      }))
  const tool = Tool.layer(
    { name, options: { ...options, metadata }, ...shapes },
    (input): Answered =>
      Effect.withFiber((fiber): Answered => {
        const cell = Context.getOrUndefined(fiber.context, Preparing)
        return cell === undefined ? run(input) : prepared(input, cell)
      })
  )
  return Layer.merge(tool, looked)
}

const unkept = new Error("A server has a task, and no `Tasks.layer` among its definitions: add it")

/** Looks, when all definitions of a server are there, that its tasks are kept by something: once, for it is one layer. */
const looked: Layer.Layer<never, never, Catalog> = Extension.effect(
  Effect.map(Catalog, (catalog) => ({
    name: "tasks that need `Tasks.layer`",
    ready: Effect.suspend(() => faceOf(catalog) === undefined ? Effect.die(unkept) : Effect.void)
  }))
)

const durable = <Name extends string, Input, Output>(
  task: Tool.Tool<Name, Input, Output>
): Tool.Tool<Name, Input, Output> => {
  const { execution, metadata = Context.empty() } = task.options
  return {
    ...task,
    options: {
      ...task.options,
      execution: { taskSupport: "optional", ...execution },
      metadata: Context.add(metadata, Durable, true)
    }
  }
}

const running = <Input, A, E, R>(
  body: (input: Input) => Effect.Effect<A, E, R>
): (input: Input) => Effect.Effect<A, E, Exclude<R, CurrentTask> | McpRequest> =>
(input) =>
  Effect.flatMap(McpRequest, (exchange) =>
    exchange instanceof TaskExchange
      ? Effect.provideService(body(input), CurrentTask, exchange.task)
      : Effect.die(unkept))
