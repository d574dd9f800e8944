/**
 * Tasks that code starts by their definition: its schemas encode the arguments and decode the result, and its options
 * apply.
 */
import type { JsonObject, Request } from "@skein/protocol/JsonRpc"
import { latest } from "@skein/protocol/Revision"
import { Exchange, McpRequest, type ResponseSink } from "@skein/runtime/RequestContext"
import { requestServices, type ToolEntry } from "@skein/server/Catalog"
import type * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { TaskEngine } from "../../TaskEngine.ts"
import { NotStarted as NotStartedReason, TaskError } from "../../TaskError.ts"
import { isFinal, type NewTask, type Owner, type State } from "../../TaskState.ts"
import { endOf, type TaskEnd } from "../base/taskEnd.ts"
import { failureMessage } from "../base/text.ts"
import type { ValueOf } from "../base/child.ts"
import { type Definition, encodeArguments, valueOf } from "../engine/definitionCodec.ts"
import { type ApplicationTask, newTaskOf } from "./applicationTask.ts"
import { NotStarted, prepare } from "./beforeTask.ts"
import { Durable, policyOf, resolveSettings, type TaskPolicy } from "./policy.ts"
import { invalidOption } from "../store/database.ts"
import { findServiceOn, type TaskService } from "./taskService.ts"

/** How code starts a task. */
export interface SubmitOptions {
  /**
   * A key of up to 512 characters. While a task of the same owner and tool with this key exists, that task is returned and
   * none is created, so that a start can be repeated. Default: none.
   */
  readonly key?: string | undefined
  /** The user for whom the task runs: the `principal` of its handler, which determines its owner. Default: none. */
  readonly principal?: { readonly id: string } | undefined
  /** The owner. Default: as the policy of the task decides for the principal. */
  readonly owner?: Owner | undefined
  /** In place of the `priority` of its definition. */
  readonly priority?: number | undefined
  /** The time until it may begin: its `ttl` begins then. A negative one is 0. Default 0. */
  readonly delay?: Duration.Input | undefined
  /** When it may begin, by the clock of the store, in place of `delay`. */
  readonly startAt?: DateTime.DateTime.Input | undefined
}

/** A task that code has started. */
export interface Handle<Value> {
  /** The id of the task. Keep it secret: it may be enough to read the task. */
  readonly id: string
  /**
   * Waits for its end, without polling, and returns its value. Fails with `Failed`, `Cancelled` or `Expired`.
   */
  readonly await: Effect.Effect<Value, TaskError>
  /** Its current state; `undefined` if it is deleted or has expired. */
  readonly status: Effect.Effect<State | undefined, TaskError>
  /** Cancels it, and it compensates. Returns `false` if it has ended or does not exist. */
  readonly cancel: (statusMessage?: string) => Effect.Effect<boolean, TaskError>
}

/** When a task begins. Fails with `InvalidOption` for another value. */
export const beginOf = (
  { delay, startAt }: Pick<SubmitOptions, "delay" | "startAt">
): Effect.Effect<Pick<NewTask, "delayMs" | "startAt">, TaskError> => {
  const invalid = (name: string, value: unknown) =>
    Effect.fail(invalidOption(`${name} is not a time: ${String(value)}`))
  if (startAt !== undefined) {
    const time = DateTime.make(startAt)
    return time._tag === "None"
      ? invalid("startAt", startAt)
      : Effect.succeed({ startAt: DateTime.toEpochMillis(time.value) })
  }
  const milliseconds = delay === undefined ? 0 : Option.match(Duration.fromInput(delay), {
    onNone: () => NaN,
    onSome: Duration.toMillis
  })
  return Number.isFinite(milliseconds) ? Effect.succeed({ delayMs: milliseconds }) : invalid("delay", delay)
}

const notStarted = (message: string) => Effect.fail(new TaskError({ reason: new NotStartedReason({ message }) }))

/** The policy of a definition: that of the server, or that of its own options in a process without such a server. */
const policyFor = (
  service: TaskService["Service"] | undefined,
  { name, options: { execution, metadata = Context.empty() } }: Definition<never, unknown>
): { readonly entry: ToolEntry | undefined; readonly policy: TaskPolicy } => {
  const entry = service?.catalog.tools.get(name)
  const known = entry && service?.policyFor(entry)
  if (known !== undefined) return { entry, policy: known }
  const own = { definition: { name, ...execution && { execution } }, metadata: Context.add(metadata, Durable, true) }
  return { entry: undefined, policy: policyOf(own, service?.settings ?? resolveSettings({}))! }
}

const noSink: ResponseSink = {
  respond: () => {},
  discard: () => {},
  notify: () => true,
  drained: () => Effect.void
}

/** Prepares a task as in a call of a client that cannot be asked. Returns the arguments with the prepared value. */
const prepared = (
  { catalog }: TaskService["Service"],
  tool: ToolEntry,
  name: string,
  args: JsonObject,
  principal: ApplicationTask["principal"]
): Effect.Effect<JsonObject, TaskError> =>
  Effect.suspend(() => {
    const params = { name, arguments: args }
    const sent: Request = { _tag: "Request", id: 0, method: "tools/call", params }
    const caller = { revision: latest, capabilities: {}, info: undefined, principal }
    const request = new Exchange(noSink, sent, caller).received
    return prepare({ params, request, tool }).pipe(
      Effect.provideContext(Context.add(requestServices(catalog), McpRequest, request)),
      Effect.catch(({ message }) => notStarted(`the task "${name}" was not started: ${message}`)),
      Effect.flatMap((made) => {
        if (!(made instanceof NotStarted)) return Effect.succeed(made)
        const problem = failureMessage({ _tag: "Result", result: { ...made.result } })
        return notStarted(`the task "${name}" was not started: ${problem ?? "its preparation failed"}`)
      })
    )
  })

/** Makes a task of a definition from its encoded arguments. */
export const makeStarted = <Input, Output>(
  service: TaskService["Service"] | undefined,
  task: Definition<Input, Output>,
  { args, ...from }: Omit<ApplicationTask, "tool">
): Effect.Effect<NewTask, TaskError> =>
  Effect.suspend(() => {
    const { name: tool } = task
    const { entry, policy } = policyFor(service, task as Definition<never, unknown>)
    const made = !policy.prepares
      ? Effect.succeed(args)
      : prepared(service!, entry!, tool, args, from.principal)
    return Effect.map(made, (args) => newTaskOf(policy, { ...from, args, tool }))
  })

/** Waits for the end of a task. */
const endedTask = (engine: TaskEngine["Service"], id: string): Effect.Effect<TaskEnd, TaskError> =>
  Effect.map(
    Stream.runHead(Stream.filter(engine.watch(id), isFinal)),
    (state) => endOf(Option.getOrUndefined(state))
  )

/** Implements `Task.submit`. */
export const submit = <Name extends string, Input, Output>(
  task: Tool.Tool<Name, Input, Output>,
  args: NoInfer<Input>,
  { key, owner, principal, priority, ...begin }: SubmitOptions = {}
): Effect.Effect<Handle<ValueOf<Output>>, TaskError, TaskEngine> =>
  Effect.flatMap(
    TaskEngine,
    (engine) =>
      Effect.flatMap(Effect.zip(encodeArguments(task, args), beginOf(begin)), ([encoded, begin]) =>
        makeStarted(findServiceOn(engine, task.name), task, { args: encoded, owner, principal, priority, ...begin }))
        .pipe(
          Effect.flatMap((made) =>
            engine.submit({ ...made, key })
          ),
          Effect.map(({ id }): Handle<ValueOf<Output>> => ({
            id,
            await: Effect.flatMap(endedTask(engine, id), (end) => valueOf(task, end)),
            status: engine.get(id),
            cancel: (statusMessage) => engine.cancel(id, statusMessage)
          }))
        )
  )
