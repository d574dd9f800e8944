/**
 * What all methods about tasks have in common: how a task begins, and who may see it.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import * as McpError from "@skein/protocol/McpError"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { Caller, RequestContext } from "@skein/runtime/RequestContext"
import type { Catalog, Handled, ToolEntry } from "@skein/server/Catalog"
import * as Extensions from "@skein/server/Extension"
import type { Extension, ToolCall } from "@skein/server/Extension"
import type { Visible } from "@skein/server/Registry"
import * as Effect from "effect/Effect"
import type { TaskEngine } from "../../TaskEngine.ts"
import type { TaskError } from "../../TaskError.ts"
import type { NewTask, Owner, State } from "../../TaskState.ts"
import { asIfAny } from "./inputCapability.ts"
import { prepare, Unbegun, without } from "./beforeTask.ts"
import { type OwnerPolicy, policyOf, type TaskPolicy, type TaskSettings, within } from "./policy.ts"

/** One answer for what never was, is forgotten, has expired, or is somebody else's: who asks learns nothing by it. */
const unknown = Effect.fail(McpError.invalidParams("Task not found: there is none with this id, or it has expired"))

/** "Limit" is the client's to hear; what else is wrong with the store is in the log, under the reference that it hears. */
const failed = (error: TaskError): Effect.Effect<never, McpError.McpError> =>
  error.reason === "Limit"
    ? Effect.fail(
      new McpError.McpError({
        reason: "InternalError",
        message: "There are too many tasks: this one was not begun. Try again when others are over"
      })
    )
    : Effect.die(error)

/** Turns what the engine fails with into what a client is told. */
export const told = <A, R>(effect: Effect.Effect<A, TaskError, R>): Effect.Effect<A, McpError.McpError, R> =>
  Effect.catch(effect, failed)

/** Ends a task that nobody wants any more. A store that does not answer holds up nobody who leaves: then it goes on. */
export const abandon = ({ engine }: Face, id: string): Effect.Effect<void> =>
  Effect.catchCause(
    Effect.timeout(
      Effect.andThen(engine.cancel(id, "The call that it was made for was cancelled"), engine.forget(id)),
      "5 seconds"
    ),
    (cause) => Effect.logWarning("A task whose call was cancelled could not be, and goes on", cause)
  )

/** What lets models use tasks, where a server has `TaskTools`. */
export interface ModelTools {
  /** Who has these tools. */
  readonly offered: Visible
  /** How long a call of one of them waits for its task, in milliseconds. */
  readonly maxWait: number
}

/** The tasks of one server. */
export class Face {
  /** What models can use, if there is something. */
  tools: ModelTools | undefined = undefined
  readonly engine: TaskEngine["Service"]
  readonly catalog: Catalog["Service"]
  readonly settings: TaskSettings
  /** The tasks that run now, in this process. */
  readonly running = new Set<RequestContext>()
  /** What holds for a tool is found out once. */
  readonly #held = new WeakMap<ToolEntry, { readonly held: TaskPolicy | undefined }>()
  /** The owner policies that tools have of their own, by name: a tool that is not offered for a while has tasks all the same. */
  readonly #policies = new Map<string, OwnerPolicy>()

  constructor(engine: TaskEngine["Service"], catalog: Catalog["Service"], settings: TaskSettings) {
    this.engine = engine
    this.catalog = catalog
    this.settings = settings
  }

  /** What holds for the tasks of a tool; `undefined` for one whose calls are no tasks. */
  held(tool: ToolEntry): TaskPolicy | undefined {
    let known = this.#held.get(tool)
    if (known === undefined) {
      this.#held.set(tool, known = { held: policyOf(tool, this.settings) })
      const { owner = this.settings.owner } = known.held ?? {}
      if (owner !== this.settings.owner) this.#policies.set(tool.definition.name, owner)
    }
    return known.held
  }

  /** Whose the tasks of a tool are that this caller makes. */
  ownerOf(tool: string, caller: Caller): Owner {
    const entry = this.catalog.tools.get(tool)
    const policy = (entry === undefined ? undefined : this.held(entry)?.owner) ?? this.#policies.get(tool)
    return (policy ?? this.settings.owner)(caller)
  }

  /** Every owner that this caller is, by any policy; nobody's tasks are nobody's to list. */
  owners(caller: Caller): ReadonlyArray<string> {
    for (const [, tool] of this.catalog.tools.sorted) this.held(tool)
    const policies = new Set([this.settings.owner, ...this.#policies.values()])
    return [...new Set([...policies].map((policy) => policy(caller)))].filter((owner) => owner !== null)
  }

  /** Whether a task is there for a caller. */
  sees(caller: Caller, { owner, tool }: Pick<State, "owner" | "tool">): boolean {
    return owner === null || owner === this.ownerOf(tool, caller)
  }

  /** The caller's task with this id, or the one answer for all that is not. It is always one look into the store. */
  find(id: string, caller: Caller): Effect.Effect<State, McpError.McpError> {
    return Effect.flatMap(
      told(this.engine.get(id)),
      (state) => state !== undefined && this.sees(caller, state) ? Effect.succeed(state) : unknown
    )
  }

  /** The arguments that the task of a call begins with; or the result of a call that is over before its task has begun. */
  prepare(call: ToolCall): Handled<JsonObject | Unbegun> {
    const { arguments: args = none } = call.params
    return this.held(call.tool)?.prepares === true ? prepare(call) : Effect.succeed(without(args))
  }

  /** Begins the task of a call that is prepared. It is durable when this succeeds. It asks what `asked` can be asked. */
  submit(
    { params, request: { caller }, tool }: ToolCall,
    args: JsonObject,
    ttl?: number,
    asked = caller
  ): Effect.Effect<State, McpError.McpError> {
    return Effect.suspend(() => {
      const held = this.held(tool)
      if (held === undefined) return Effect.die(new Error(`${params.name} is no tool whose calls are tasks`))
      const owner = held.owner(caller)
      return told(this.engine.submit({
        tool: params.name,
        args,
        pool: held.pool,
        owner,
        caller: kept(asked),
        ttl: ttl === undefined ? held.ttl : within(Math.max(0, Math.floor(ttl)), held.maxTtl),
        pollInterval: held.pollInterval,
        // Nobody is not one.
        limits: owner === null ? { ...held.limits, owner: {} } : held.limits
      }))
    })
  }

  /**
   * Both. `ttl` is what the client asks for, in milliseconds. The client that cancels its call while the task begins never learns of
   * the task: it is cancelled too.
   */
  attempt(call: ToolCall, ttl?: number): Handled<State | Unbegun> {
    const { request: exchange, tool } = call
    const asked = this.held(tool)?.inputFrom === "anyone" ? asIfAny(exchange.caller) : exchange.caller
    return Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(restore(this.prepare(call)), (args): Handled<State | Unbegun> =>
        args instanceof Unbegun
          ? Effect.succeed(args)
          : Effect.tap(
            this.submit(call, args, ttl, asked),
            ({ id }) => exchange.cancelled ? abandon(this, id) : Effect.void
          ))
    )
  }

  /** The same for those who can answer with a task or an error only. */
  begin(call: ToolCall, ttl?: number): Handled<State> {
    return Effect.flatMap(this.attempt(call, ttl), (begun) =>
      begun instanceof Unbegun
        ? Effect.fail(McpError.invalidParams(textOf(begun.result) ?? `${call.params.name} was not begun`))
        : Effect.succeed(begun))
  }
}

const textOf = ({ content: [first] }: CallToolResult): string | undefined =>
  first?.type === "text" ? first.text : undefined

const none: JsonObject = {}

/** What is kept of a caller: no claims, and no credentials. */
const kept = ({ capabilities, info, principal, revision }: Caller): NewTask["caller"] => ({
  revision,
  capabilities,
  info,
  principal: principal === undefined ? undefined : { id: principal.id }
})

/** The tasks of a server, found among its extensions. */
export const faceOf = (catalog: Catalog["Service"]): Face | undefined => {
  for (const extension of Extensions.list(catalog)) {
    const { face } = extension as Extension & { readonly face?: unknown }
    if (face instanceof Face) return face
  }
  return undefined
}
