/**
 * Tasks: tools with a durable handler.
 *
 * A task is defined like a tool, with additional options for its tasks. Its handler consists of steps (`Step.run`). All
 * code between the steps runs again when this process or another continues the task, and receives the recorded results
 * of the steps. `Elicitation`, `Sampling` and `Roots` ask as in any tool, and their answers are recorded too. Anything
 * that may differ between two runs must come from a step: the time, a random number, the response of a service.
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
 *     yield* Task.setStatusMessage("The dough rests")
 *     yield* Step.sleep("rest", "12 hours")
 *     const { sure } = yield* Elicitation.accepted(Elicitation.form("Bake now?", { sure: Schema.Boolean }))
 *     return sure ? `${cakes} cakes` : "Nothing"
 *   }))
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { McpRequest } from "@skein/runtime/RequestContext"
import { Catalog, type HandlerServices } from "@skein/server/Catalog"
import type { DefinitionError } from "@skein/server/DefinitionError"
import * as JsonForm from "@skein/protocol/JsonForm"
import type { HandlerError } from "@skein/server/HandlerError"
import * as AsyncHandler from "@skein/server/AsyncHandler"
import * as Extension from "@skein/server/Extension"
import type { HandlerContext } from "@skein/server/HandlerContext"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Struct from "effect/Struct"
import { CurrentTask, type EventOptions } from "./CurrentTask.ts"
import type { Child, ForEachOptions, StartOptions, ValueOf } from "./internal/base/child.ts"
import * as childTasks from "./internal/engine/childTasks.ts"
import { toEffect } from "./internal/engine/taskContext.ts"
import { TaskRequestContext } from "./internal/engine/taskRequest.ts"
import { type PreparedCell, preparedOf, Preparing, withPrepared } from "./internal/protocol/beforeTask.ts"
import { Durable, Prepares, TaskPolicyAnnotation, type ToolPolicyOptions } from "./internal/protocol/policy.ts"
import * as startedTask from "./internal/protocol/startedTask.ts"
import type { Handle, SubmitOptions } from "./internal/protocol/startedTask.ts"
import { hasTasks } from "./internal/protocol/taskService.ts"
import type { TaskContext } from "./TaskContext.ts"
import type { TaskEngine } from "./TaskEngine.ts"
import type { EventError, TaskError } from "./TaskError.ts"

export type { EventOptions } from "./CurrentTask.ts"
export type {
  DebounceOptions,
  KeyLimits,
  RateOptions,
  SingletonOptions,
  TaskCall,
  ToolPolicyOptions
} from "./internal/protocol/policy.ts"
export type { Child, ForEachOptions, StartOptions, ValueOf } from "./internal/base/child.ts"
export type { Handle, SubmitOptions } from "./internal/protocol/startedTask.ts"

/** The options of a task: those of a tool, and those for its tasks. */
export interface Options<Input extends Tool.AnySchema, Output extends Tool.AnySchema>
  extends Omit<Tool.Options<Input, Output>, "execution">, ToolPolicyOptions
{
  /**
   * Whether a call may return a task.
   *
   * - `optional`, the default: in 2025-11-25 a call returns a task if the client requests one; since 2026-07-28 it does
   *   for every client that declares the extension, unless `asTask` returns `false`. Other calls wait for the result.
   * - `required`: a call that cannot return a task is rejected, with `-32601` in 2025-11-25 and `-32021` since
   *   2026-07-28. Calls in older revisions wait for the result.
   * - `forbidden`: every call waits for the result. Its execution is durable nevertheless.
   *
   * A call that waits asks the task's questions as its own, and reports its progress. A JSON-RPC error of the client is
   * the answer to the question: the handler fails with it. When the client cancels the call, or its connection is lost,
   * the task is cancelled too. When the server stops, which includes that its client has closed the stdin of a stdio
   * server, the task is neither cancelled nor answered: its questions stay open, it continues when a process runs
   * again, and its result is stored for its `ttl`, although the client has no id to read it by. Others can answer
   * its questions: a client of its owner with tasks, a model with `TaskTools`, or your code with `TaskEngine.answer`. A
   * task whose client of 2026-07-28 was asked and did not call again also stays for its `ttl`.
   */
  readonly taskSupport?: "forbidden" | "optional" | "required" | undefined
}

/** The options that are not those of a tool. */
const policyKeys = [
  "inputFrom",
  "asTask",
  "labels",
  "concurrency",
  "debounce",
  "limits",
  "maxTtl",
  "owner",
  "perKey",
  "pollInterval",
  "pool",
  "priority",
  "queueKey",
  "rate",
  "retry",
  "singleton",
  "ttl",
  "versioning"
] as const

/** The definition of a task: the definition of a tool. */
export interface Task<Name extends string, Input, Output> extends Tool.Tool<Name, Input, Output> {}

/**
 * Defines a task.
 *
 * @example
 * const bake = Task.make("bake", { input: { cakes: Schema.Int }, ttl: "3 days", limits: { live: 3 } })
 */
export const make = <
  const Name extends string,
  Input extends Tool.AnySchema = {},
  Output extends Tool.AnySchema = never
>(
  name: Name,
  options: Options<Input, Output> & Tool.CheckedSchemas<Input, Output> = {} as never
): Task<Name, Tool.InputOf<Input>, [Output] extends [never] ? never : Tool.OutputOf<Output>> => {
  const { metadata, taskSupport = "optional", ...tool } = Struct.omit(options, policyKeys)
  return Tool.make<Name, Input, Output>(name, {
    ...tool as Tool.Options<Input, Output> & Tool.CheckedSchemas<Input, Output>,
    execution: { taskSupport },
    metadata: policy(Struct.pick(options, policyKeys), metadata)
  })
}

/**
 * The options for the tasks of an ordinary tool, whose handler has no steps. Pass them as `metadata` of the tool.
 *
 * @example
 * const slow = Tool.make("slow", {
 *   execution: { taskSupport: "optional" },
 *   metadata: Task.policy({ ttl: "1 hour" })
 * })
 */
export const policy = (
  options: ToolPolicyOptions,
  metadata: Context.Context<never> = Context.empty()
): Context.Context<never> => Context.add(metadata, TaskPolicyAnnotation, options)

/** The handler of a task: its effect may use the services of its task and those that the layer captures. */
type Body<Input, Output, E, R> = (input: Input) => Effect.Effect<Tool.Answer<Output>, E, R>

/** The same as an async function. */
type Handler<Input, Output, R> = (
  input: Input,
  context: TaskContext<R>
) => Tool.Answer<Output> | Promise<Tool.Answer<Output>>

/** The services that the layer of a handler captures. */
type BodyServices<R> = HandlerServices<Exclude<R, CurrentTask>>

/**
 * Offers a task with its handler. `Tasks.layer` must be among the definitions of the server; without it the server dies
 * at its start.
 *
 * - The value of the handler is the result of the call, as in a tool. A failure becomes a result with `isError` and the
 *   `message` of the error, and a defect one with a reference. The task is `completed`; in 2025-11-25 a task with `isError`
 *   is `failed`.
 * - An `McpError` becomes a JSON-RPC error, and the task is `failed`.
 * - When a task is cancelled, by its client or at the end of its time to live, the handler is interrupted, and its
 *   compensations run. When the process stops, the handler is interrupted without compensations, and runs again when a
 *   process takes the task over.
 * - The handler's request (`McpRequest`) is that of the task. From the call it has only the principal's id, the
 *   client's capabilities and the arguments.
 *
 * @example
 * const baking = Task.layer(bake, ({ cakes }) => Step.run("bake", {}, () => bakeAll(cakes)))
 */
export const layer = <Name extends string, Input, Output, R = never, A = never>(
  task: Tool.Tool<Name, Input, Output>,
  body: (
    input: Input
  ) => Effect.Effect<Tool.Answer<NoInfer<Output>>, HandlerError, R> | (Tool.EffectMistake<A, "Task", Output> & A)
): Layer.Layer<never, DefinitionError, Catalog | BodyServices<R>> =>
  Layer.merge(
    Tool.layer(asDurable(task), withCurrentTask(body as Body<Input, NoInfer<Output>, HandlerError, R>)),
    requireTasksLayer
  )

/**
 * Offers a task with a handler that returns a promise. The second argument of the handler has steps, sleeps and
 * compensations that return promises, and questions, progress and the abort signal: see `TaskContext`. Everything else is
 * as in `layer`.
 *
 * @example
 * const baking = Task.async(bake, async ({ cakes }, { elicit, sleep, step }) => {
 *   const flour = await step("flour", ({ key }) => orderFlour(cakes, key), { retry: { times: 5 } })
 *   await sleep("rest", "12 hours")
 *   const answer = await elicit("Bake now?", { sure: Schema.Boolean })
 *   return answer.action === "accept" && answer.content.sure ? `${cakes} cakes of ${flour}` : "Nothing"
 * })
 */
const async_ = <Name extends string, Input, Output, R = never, A = never>(
  task: Tool.Tool<Name, Input, Output>,
  handler: (
    input: Input,
    context: TaskContext<R>
  ) => Tool.Answer<NoInfer<Output>> | Promise<Tool.Answer<NoInfer<Output>>> | (Tool.AsyncMistake<A, Output> & A)
): Layer.Layer<never, DefinitionError, Catalog | BodyServices<R>> =>
  layer(task, toEffect(handler as Handler<Input, NoInfer<Output>, R>))
export { async_ as async }

/**
 * Offers a task with its handler until the scope closes, while the server runs. Fails like `layer`. In a server without
 * `Tasks.layer` each call is a defect.
 *
 * @example
 * const addBaking = Catalog.persistent(Task.add(bake, ({ cakes }) => Step.run("bake", {}, () => bakeAll(cakes))))
 */
export const add = <Name extends string, Input, Output, R = never, A = never>(
  task: Tool.Tool<Name, Input, Output>,
  body: (
    input: Input
  ) => Effect.Effect<Tool.Answer<NoInfer<Output>>, HandlerError, R> | (Tool.EffectMistake<A, "Task", Output> & A)
): Effect.Effect<void, DefinitionError, Scope.Scope | Catalog | BodyServices<R>> =>
  Tool.add(asDurable(task), withCurrentTask(body as Body<Input, NoInfer<Output>, HandlerError, R>))

/**
 * Replaces the tool or task with the same name until the scope closes. Tasks of the replaced definition continue with
 * the new handler.
 *
 * @example
 * const bakeFaster = Catalog.persistent(Task.replace(bake, ({ cakes }) => Step.run("bake", {}, () => bakeAll(cakes))))
 */
export const replace: typeof add = <Name extends string, Input, Output, R>(
  task: Tool.Tool<Name, Input, Output>,
  body: unknown
) => Tool.replace(asDurable(task), withCurrentTask(body as Body<Input, NoInfer<Output>, HandlerError, R>))

/**
 * Offers a task that is prepared in the call, before the task starts and while the client is connected. The prepared
 * value is stored with the arguments, as JSON by its schema, and passed to the handler.
 *
 * - `prepare` has the request of the call: the claims of its principal and its credentials are not available in the
 *   task.
 * - `prepare` asks for input through the call, even if the client then gets a task: "servers … SHOULD resolve all MRTR
 *   exchanges synchronously before responding with a `CreateTaskResult`" (the extension, "Task Creation").
 * - `prepare` is an ordinary tool handler: it is not durable, and since 2026-07-28 it runs again with each answer.
 * - A failure of `prepare` is the result of the call, as in a tool, and no task starts. In 2025-11-25, where a call
 *   that requests a task cannot return a tool result, it is `-32602`.
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
): Layer.Layer<never, DefinitionError, Catalog | HandlerServices<R1> | BodyServices<R2>> => {
  const codec = Schema.toCodecJson(schema)
  const encode = JsonForm.encodeWith(Schema.encodeUnknownResult(codec))
  const decode = Schema.decodeUnknownEffect(codec)
  const dieOf = <A, R>(effect: Effect.Effect<A, Schema.SchemaError, R>, problem: string): Effect.Effect<A, never, R> =>
    Effect.catch(effect, ({ message }) => Effect.die(new Error(`task "${task.name}": ${problem}: ${message}`)))
  const run = withCurrentTask((input: Input) =>
    Effect.flatMap(McpRequest, (request) =>
      // Another version of the handler may have stored a value that this schema cannot decode.
      Effect.flatMap(
        dieOf(decode(preparedOf(request)), "its schema cannot decode the prepared value"),
        (prepared) => body(input, prepared)
      ))
  )
  const { name, options, ...shapes } = asDurable(task)
  const metadata = Context.add(options.metadata ?? Context.empty(), Prepares, true)
  type Answered = Effect.Effect<Tool.Answer<Output>, E1 | E2, R1 | Exclude<R2, CurrentTask> | McpRequest>
  const prepared = (input: Input, cell: PreparedCell): Answered =>
    Effect.flatMap(
      prepare(input),
      (prepared) =>
        Effect.map(
          dieOf(Effect.fromResult(encode(prepared)), "its schema cannot encode the value of prepare"),
          (json) => {
            cell.value = { json }
            // The task starts, so no client receives this result.
            return Tool.result({ isError: true }) as Tool.Answer<Output>
          }
        )
    )
  const tool = Tool.layer(
    { name, options: { ...options, metadata }, ...shapes },
    (input): Answered =>
      Effect.withFiber((fiber): Answered => {
        const cell = Context.getOrUndefined(fiber.context, Preparing)
        return cell === undefined ? run(input) : prepared(input, cell)
      })
  )
  return Layer.merge(tool, requireTasksLayer)
}

/**
 * Offers a task that is prepared in the call, with functions that return promises: see `layerPrepared`. The handler receives
 * what JSON makes of the prepared value, as for the result of a step.
 *
 * @example
 * const order = Task.asyncPrepared(
 *   Task.make("order", { input: { cakes: Schema.Int } }),
 *   (_, { principal }) => accountOf(principal),
 *   ({ cakes }, account, { step }) => step("bake", () => bakeFor(account, cakes))
 * )
 */
export const asyncPrepared = <Name extends string, Input, Output, P>(
  task: Tool.Tool<Name, Input, Output>,
  prepare: ((input: Input, context: HandlerContext) => P | Promise<P>) & JsonForm.Checked<P>,
  handler: (
    input: Input,
    prepared: JsonForm.JsonForm<P>,
    context: TaskContext
  ) => Tool.Answer<NoInfer<Output>> | Promise<Tool.Answer<NoInfer<Output>>>
): Layer.Layer<never, DefinitionError, Catalog> => {
  const prepared = AsyncHandler.toEffect(prepare as (input: Input, context: HandlerContext) => P | Promise<P>)
  return layerPrepared(
    task,
    PreparedForm,
    (input) =>
      Effect.flatMap(prepared(input), (value) => {
        const form = value === undefined ? Result.succeed([]) : Result.map(JsonForm.make(value, "it"), (form) => [form])
        return Result.isSuccess(form)
          ? Effect.succeed(form.success)
          : Effect.die(new Error(`task "${task.name}": the value of prepare cannot be stored: ${form.failure}`))
      }),
    (input, [value]) =>
      toEffect((input: Input, context: TaskContext) => handler(input, value as JsonForm.JsonForm<P>, context))(input)
  )
}

/** A list of the prepared value, or of none for `undefined`. */
const PreparedForm = /* @__PURE__ */ Schema.Array(Schema.Unknown)

const missingTasksLayer = new Error("task definitions require `Tasks.layer`: add it to the definitions of the server")

/**
 * Checks that a server has `Tasks.layer`, after all of its definitions were added. It is one layer, so that the check
 * runs once per server.
 */
const requireTasksLayer: Layer.Layer<never, never, Catalog> = Extension.effect(
  Effect.map(Catalog, (catalog) => ({
    name: "require Tasks.layer",
    ready: Effect.suspend(() => hasTasks(catalog) ? Effect.void : Effect.die(missingTasksLayer))
  }))
)

const asDurable = <Name extends string, Input, Output>(
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

const withCurrentTask = <Input, A, E, R>(
  body: (input: Input) => Effect.Effect<A, E, R>
): (input: Input) => Effect.Effect<A, E, Exclude<R, CurrentTask> | McpRequest> =>
(input) =>
  Effect.flatMap(McpRequest, (request) =>
    request instanceof TaskRequestContext
      ? Effect.provideService(body(input), CurrentTask, request.task)
      : Effect.die(missingTasksLayer))

/**
 * Starts a task from your own code: a script, a webhook, another part of a server. The arguments have the type of `input`
 * and are encoded by it; the options of the task (`ttl`, `limits`, `pool`, …) and those of `Tasks.layer` apply. The task is
 * stored when this succeeds, and runs even if this process ends.
 *
 * - Fails with `InvalidArguments`, `LimitExceeded` or `NotStarted` before anything is stored.
 * - `await` of the handle returns the structured content that `output` decodes, or the text of a task without `output`.
 * - Its questions fail, unless its `inputFrom` is `"anyone"`.
 * - In a process without a server of the task, its own options apply, and the defaults of `Tasks.layer`. There, a task of
 *   `layerPrepared` cannot be prepared, and fails when it runs.
 * - A schema of another library (`z.object({ … })`) cannot encode. The arguments are sent as their JSON, which must be valid
 *   for it, and the value is the JSON of the content.
 *
 * @example
 * const total = Effect.gen(function*() {
 *   const handle = yield* Task.submit(report, { customer: 7 }, { key: "report/7" })
 *   return (yield* handle.await).total
 * })
 */
export const submit: <Name extends string, Input, Output>(
  task: Tool.Tool<Name, Input, Output>,
  args: NoInfer<Input>,
  options?: SubmitOptions
) => Effect.Effect<Handle<ValueOf<Output>>, TaskError, TaskEngine> = startedTask.submit

/**
 * Starts a child task from the body of a task: once, also if the body runs again or its process ends in between. The
 * arguments, the value and the options are those of `submit`. The child has the owner, the principal and the trace of its
 * parent, and counts for the limits of its tool, and not for those of its owner.
 *
 * - `key` is the name of the child in its parent: unique, and the same in each run. Two children with one name are a defect.
 * - A child that has not ended when its parent ends, in whatever way, is cancelled before the compensations of the parent
 *   run. With `detached: true` it continues.
 * - Fails with `InvalidArguments`, or with the recorded `LimitExceeded` or `NotStarted`.
 * - It is a defect in a step and in a compensation.
 *
 * @example
 * const both = Effect.gen(function*() {
 *   const eu = yield* Task.start(report, { region: "eu" }, { key: "eu" })
 *   const us = yield* Task.start(report, { region: "us" }, { key: "us" })
 *   return yield* Effect.all([Task.join(eu), Task.join(us)], { concurrency: "unbounded" })
 * })
 */
export const start: <Name extends string, Input, Output>(
  task: Tool.Tool<Name, Input, Output>,
  args: NoInfer<Input>,
  options?: StartOptions
) => Effect.Effect<Child<ValueOf<Output>>, TaskError, CurrentTask> = childTasks.start

/**
 * Waits for the end of a child, and returns its value. While all of a task waits it takes no memory and does not count for
 * `concurrency`. Races keep their winner in each run, as with sleeps. The value is stored in the log of the parent, so keep
 * it small.
 *
 * - Fails with `Failed` if the child has failed, `Cancelled`, or `Expired`: the `ttl` of the child must cover the time until
 *   it is joined.
 * - It is a defect in a step and in a compensation.
 *
 * @example
 * const first = Effect.race(Task.join(eu), Task.join(us))
 */
export const join: <Value>(child: Child<Value>) => Effect.Effect<Value, TaskError, CurrentTask> = childTasks.join

/**
 * Starts a child for each item, `concurrency` at a time (100 by default), waits for all of them, and returns their values in
 * the order of the items. The parent runs only to start further children, and its log has one event for all of them. So
 * prefer it to `start` and `join` for more than a hundred.
 *
 * - At most 10,000 items. More, and arguments that are not valid, fail with `InvalidArguments` before a child starts. The
 *   items must be the same in each run: take them from a step if they are read from somewhere.
 * - `onFailure`: with `fail`, the default, the first failure cancels the other children. With `collect` the value of each
 *   item is a `Result`.
 * - At a limit on tasks it waits until a child fits.
 * - The children are cancelled when it is interrupted, and as with `start`.
 *
 * @example
 * const rows = Effect.gen(function*() {
 *   const results = yield* Task.forEach(figures, customers, { concurrency: 20, onFailure: "collect" })
 *   return results.filter(Result.isSuccess).map(({ success }) => success)
 * })
 */
export const forEach: {
  <Name extends string, Input, Output>(
    task: Tool.Tool<Name, Input, Output>,
    items: ReadonlyArray<NoInfer<Input>>,
    options: ForEachOptions & { readonly onFailure: "collect" }
  ): Effect.Effect<ReadonlyArray<Result.Result<ValueOf<Output>, TaskError>>, TaskError, CurrentTask>
  <Name extends string, Input, Output>(
    task: Tool.Tool<Name, Input, Output>,
    items: ReadonlyArray<NoInfer<Input>>,
    options?: ForEachOptions & { readonly onFailure?: "fail" | undefined }
  ): Effect.Effect<ReadonlyArray<ValueOf<Output>>, TaskError, CurrentTask>
} = childTasks.forEach as never

/** The id of the task. Keep it secret: it may be enough to read the task. */
export const id: Effect.Effect<string, never, CurrentTask> = /* @__PURE__ */ Effect.map(CurrentTask, ({ id }) => id)

/**
 * Sets the status message of the task, for people and models. Clients receive the last message, and may not receive the
 * ones before. A message that was set before a restart is not set again. A message of more than 4,096 characters is
 * cut.
 *
 * @example
 * const progress = Task.setStatusMessage("The dough rests")
 */
export const setStatusMessage = (message: string): Effect.Effect<void, never, CurrentTask> =>
  Effect.flatMap(CurrentTask, (task) => task.setStatusMessage(message))

/**
 * Waits for an event that the application sends with `TaskEngine.send` or `sendAll`, such as a webhook, and returns its value.
 * No client sees or answers it, and the status of the task stays `working`. The task takes no memory meanwhile.
 *
 * - An event that was sent before is received at once. Events with one name are received in the order of sending, each by
 *   one `awaitEvent`. An event is received once, whatever happens to processes.
 * - It can race with `Step.sleep`, questions and other events. If it loses, it receives nothing, and an event that is sent
 *   later stays for the next `awaitEvent`. A race with anything else, such as `Effect.timeout`, may discard an event that
 *   arrives at that moment: use `timeout`. Branches that wait for the same name at the same time receive its events in any
 *   order: give them different names if that matters.
 * - Fails with `EventError`: `Timeout` after the `timeout`, and `InvalidEvent` for a value that does not match the `schema`.
 *   The task has received such an event, and can wait for the next one.
 * - It is a defect in a step and in a compensation, and if the name, with the topic, does not have 1 to 512 characters.
 *
 * @example
 * const paid = Task.awaitEvent("paid", {
 *   topic: `order/${order}`,
 *   schema: Schema.Struct({ receipt: Schema.String }),
 *   timeout: "2 days"
 * })
 */
export const awaitEvent = <A = unknown>(
  name: string,
  options?: EventOptions<A>
): Effect.Effect<A, EventError, CurrentTask> => Effect.flatMap(CurrentTask, (task) => task.awaitEvent(name, options))

/**
 * Sets a label of the task, or changes its value. Operators find tasks by their labels (`TaskFilter.labels`, `skein tasks
 * list --label`); clients do not see them. They are readable in the store also if tasks are encrypted.
 *
 * A task has at most ten labels. A name has 1 to 200 characters, and a value at most 200. Fails with `LimitExceeded` or
 * `InvalidOption` otherwise, and the labels stay as they are. `labels` of `Task.make` sets labels when the task is created.
 *
 * @example
 * const labelled = Task.label("order", order.id)
 */
export const label = (name: string, value: string): Effect.Effect<void, TaskError, CurrentTask> =>
  Effect.flatMap(CurrentTask, (task) => task.label(name, value))

/**
 * Adds an item to the output of the task, which clients and the application read while it runs: parts of a result, or what an
 * agent says and does. The owner of the task reads and subscribes to the resource `task-output://<id>?from=<offset>`, and the
 * application calls `TaskEngine.followOutput`.
 *
 * - `value` is JSON. Between steps each item is added once, however often the body runs again. In a step it is added at once,
 *   and again if the step runs again; in a transactional step, with the commit.
 * - Items have the order in which they are emitted, and offsets from 0. They are deleted with the task, and
 *   `Task.continueWith` keeps them.
 * - Fails with `InvalidOutput` for a value without a JSON form, or of more than 262,144 bytes, and with `TooMuchOutput` for
 *   more than 10,000 items or 16 MiB in a task. Send many small parts, such as words of a model, together.
 * - Each item between steps is an event of the log: see `Task.continueWith` for a task that emits for months. Items are counted, so
 *   code that emits in another number than before a deployment repeats or omits items of tasks in progress.
 * - It is a defect in a compensation.
 *
 * @example
 * const chapter = (n: number) =>
 *   Effect.flatMap(Step.run(`chapter ${n}`, { success: Schema.String }, () => write(n)), (text) => Task.emit({ n, text }))
 */
export const emit = (value: unknown): Effect.Effect<void, TaskError, CurrentTask> =>
  Effect.flatMap(CurrentTask, (task) => task.emit(value))

/**
 * Whether a task runs with a change of the code. Use it for a change that running tasks must not meet, such as a new step
 * in front of others: they continue with the code before, and their compensations are found.
 *
 * - `true` for a task that comes to this point with nothing recorded behind it, such as each new task. `false` for a task
 *   that has recorded a step, a sleep or a question behind it, because it began with the code before.
 * - The log of the task has the decision, under this name, so that it stays the same in each later run. Each change needs
 *   its own name.
 * - Call it before parallel branches: it is `false` while another branch has recorded more than this run has reached.
 * - Remove the code before, and then the call, when all tasks that began with it have ended.
 * - It is a defect in a step.
 *
 * @example
 * const paying = Task.layer(order, ({ amount }) =>
 *   Effect.gen(function*() {
 *     if (yield* Task.patched("audit first")) yield* Step.run("audit", {}, () => audit(amount))
 *     yield* Step.run("charge", {}, (key) => charge(amount, key))
 *     return "Paid"
 *   }))
 */
export const patched = (name: string): Effect.Effect<boolean, never, CurrentTask> =>
  Effect.flatMap(CurrentTask, (task) => task.patched(name))

/**
 * Runs an effect that a cancellation of the task waits for, such as the two steps of a transfer. The task is cancelled at once
 * for its client, and everything else stops. The section goes on to its end, also if its process ends meanwhile, before the
 * compensations run, those of its own steps included.
 *
 * - The name is unique in the task, and the same in each run: the log has the beginning of the section.
 * - It may have steps and sleeps. To wait for a question, an event or children is a defect in it, and so is
 *   `Task.continueWith`: it must come to its end without others. At the end of `undoTimeout` an expired task is deleted nevertheless.
 * - It does not protect from an interruption by your own code, such as a lost race, nor from `maxAttempts`.
 * - A section in a section belongs to the outer one. It is a defect in a step. A compensation needs none, since nothing cancels it.
 *
 * @example
 * const transferred = Task.nonCancellable("transfer", Effect.andThen(
 *   Step.run("debit", {}, (key) => debit(from, amount, key)),
 *   Step.run("credit", {}, (key) => credit(to, amount, key))
 * ))
 */
export const nonCancellable = <A, E, R>(
  name: string,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R | CurrentTask> => Effect.flatMap(CurrentTask, (task) => task.nonCancellable(name, effect))

/** A branch of a task. */
export interface Branch<A, E> {
  /** Waits for its end. Fails with `TaskError`, `Cancelled`, when it is cancelled. */
  readonly join: Effect.Effect<A, E | TaskError>
  /**
   * Cancels the branch, and waits for that: its steps are interrupted, and the compensations that it has added run, the last
   * one first. The task goes on. If the branch has ended, its compensations run as well. Further calls have no effect.
   */
  readonly cancel: Effect.Effect<void>
}

/**
 * Starts a branch beside the rest of the body, which can be cancelled alone: a hotel that is given back because there is no
 * flight. The name is unique in the task. Without `cancel` it is a part of the task like any other: the end of the body
 * interrupts it, and its compensations run with those of the task.
 *
 * The cancellation is a section (`nonCancellable`): a task that is cancelled meanwhile ends it first. It is a defect in a
 * step and in a compensation.
 *
 * @example
 * const booked = Effect.gen(function*() {
 *   const hotel = yield* Task.branch("hotel", bookHotel.pipe(Step.withCompensation(giveHotelBack)))
 *   const flight = yield* Effect.option(bookFlight)
 *   if (Option.isNone(flight)) return yield* Effect.as(hotel.cancel, "No flight")
 *   return yield* hotel.join
 * })
 */
export const branch = <A, E, R>(
  name: string,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<Branch<A, E>, never, R | CurrentTask> =>
  Effect.flatMap(
    CurrentTask,
    (task) =>
      Effect.flatMap(task.branch(name, effect), ({ body, cancel }) =>
        Effect.map(
          Effect.forkChild(body, { startImmediately: true }),
          (fiber) => ({ join: Fiber.join(fiber), cancel })
        ))
  )

/**
 * Lets a function answer the queries with this name, from the state of the body: variables that it reads when it is asked
 * (`TaskEngine.query`). It must change nothing, and answers with JSON, or throws. From here on it answers, until another one with
 * the name replaces it. It is a defect in a step.
 *
 * Between two steps, the state in another process is that of the last record: a variable that a step sets itself, instead of
 * with its result, is not seen.
 *
 * @example
 * const importing = Task.layer(importAll, ({ files }) =>
 *   Effect.gen(function*() {
 *     let done = 0
 *     yield* Task.query("progress", () => ({ done, of: files.length }))
 *     for (const file of files) {
 *       yield* Step.run(file, {}, () => importFile(file))
 *       done++
 *     }
 *     return `${done} files`
 *   }))
 */
export const query = (
  name: string,
  answer: (args: JsonObject) => unknown
): Effect.Effect<void, never, CurrentTask> => Effect.flatMap(CurrentTask, (task) => task.query(name, answer))

/**
 * Ends this run of the handler, and starts the handler again from its beginning with other arguments, in the same task:
 * "continue as new". Use it in a task that works for months, such as one that polls: its log stays short.
 *
 * - The task keeps its id, owner, status message, progress, creation and time to live. A client does not notice.
 * - The log is empty, so names of steps and sleeps may be used again. The steps have other idempotency keys.
 * - The arguments are those of a call: JSON that the `input` of the task decodes. Invalid arguments end the task like
 *   those of a call. A value of `Task.layerPrepared` stays as it is.
 * - Other branches of the handler are interrupted as in a lost race, and open questions are withdrawn.
 * - It is a defect while the task has compensations, which would be lost, in a step and in a compensation.
 *
 * @example
 * const watching = Task.layer(watch, ({ since }) =>
 *   Effect.gen(function*() {
 *     const found = yield* Step.run("look", { success: Schema.Int }, () => look(since))
 *     if (found > 100) return `${found} found`
 *     yield* Step.sleep("pause", "1 hour")
 *     return yield* Task.continueWith({ since: since + 1 })
 *   }))
 */
export const continueWith = (args: JsonObject): Effect.Effect<never, never, CurrentTask | McpRequest> =>
  Effect.flatMap(
    McpRequest,
    (request) => Effect.flatMap(CurrentTask, (task) => task.continueWith(withPrepared(request, args)))
  )
