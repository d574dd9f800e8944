/**
 * One task of a server, followed by one fiber while its states or its result are read.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { ClientError } from "../../../ClientError.ts"
import type { Handle, RemoteTask, State } from "../../../RemoteTask.ts"
import { readToolResult } from "../response.ts"
import { checkToolResult, roundedInteger } from "../validateOutput.ts"
import { Broadcast } from "../../base/broadcast.ts"
import { fromRequest } from "../../base/failure.ts"
import { type End, type Followed, TaskPoller } from "./poller.ts"
import { clientClosed, isUnknown, taskCancelled, withHandle } from "./failures.ts"
import * as Requests from "./requests.ts"
import { endOf, isFinal, stateOf, type TaskStatus } from "./statusStream.ts"

// Not an option: only the last state matters for long.
const bufferSize = 16

const notCancelled = "A task could not be cancelled and may continue at the server:"

/** One task of a server, followed by one fiber while its states or its result are read. */
export class TaskFollower implements RemoteTask, Followed {
  readonly _tag = "RemoteTask"
  readonly id: string
  readonly handle: Handle
  readonly terms: Requests.TaskContext
  /** The last status that the server sent. */
  latest: TaskStatus
  /** Whether this client has asked to cancel it. */
  cancelling = false
  readonly #poller: TaskPoller
  readonly #outcome = Deferred.makeUnsafe<CallToolResult, ClientError>()
  readonly #notices: Broadcast<State>
  #state: State
  #failed: ClientError | undefined = undefined
  #waiting = 0
  #fiber: Fiber.Fiber<void> | undefined = undefined

  constructor(terms: Requests.TaskContext, received: TaskStatus) {
    this.terms = terms
    this.handle = terms.handle
    this.id = terms.handle.taskId
    this.latest = received
    this.#state = stateOf(received, terms.reports?.latest)
    this.#notices = new Broadcast(bufferSize, () => this.#state)
    this.#poller = new TaskPoller(this)
  }

  /** Makes the follower of a task whose handle alone is known. Requests its status once. */
  static resume(terms: Requests.TaskContext): Effect.Effect<TaskFollower, ClientError> {
    return Effect.map(Requests.look(terms), (received) => new TaskFollower(terms, received))
  }

  // ---- the public interface

  get states(): Stream.Stream<State, ClientError> {
    const failure = Stream.suspend(() => this.#failed === undefined ? Stream.empty : Stream.fail(this.#failed))
    return Stream.unwrap(Effect.as(this.#attached, Stream.concat(this.#notices.stream, failure)))
  }

  get result(): Effect.Effect<CallToolResult, ClientError> {
    return Effect.onInterrupt(this.awaited, () => this.left)
  }

  readonly cancel: Effect.Effect<void, ClientError> = Effect.suspend(() => {
    if (isFinal(this.latest)) return Effect.void
    this.cancelling = true
    const asked = Effect.map(Requests.cancel(this.terms), (received) => {
      if (received === undefined) this.#poller.pollNow()
      else this.#poller.push(received)
    })
    // A task that cannot be cancelled has ended, or does not exist.
    const looked = Effect.map(Requests.look(this.terms), (received) => this.#poller.push(received))
    return Effect.catchIf(asked, isUnknown, () => looked)
  })

  // ---- waiting for the result

  /** Waits for the result. Interrupting it does not affect the task. */
  get awaited(): Effect.Effect<CallToolResult, ClientError> {
    return Effect.scoped(Effect.andThen(this.#attached, Deferred.await(this.#outcome)))
  }

  /** Cancels the task after the wait was interrupted, or leaves it running. Takes no longer than `cancelTimeout`. */
  readonly left: Effect.Effect<void> = Effect.suspend(() => {
    if (this.terms.leaveRunning || isFinal(this.latest)) return Effect.void
    const duration = this.terms.client.tasks.settings.cancelTimeout
    this.cancelling = true
    return Effect.matchEffect(Requests.cancel({ ...this.terms, timeout: duration }, duration), {
      onSuccess: () => Effect.void,
      // If the task has ended or does not exist, nothing is left to cancel.
      onFailure: (error) => isUnknown(error) ? Effect.void : Effect.logWarning(notCancelled, error.message)
    })
  })

  /** Follows the task while the scope lasts. Several scopes share one fiber. */
  get #attached(): Effect.Effect<void, never, Scope.Scope> {
    const begin = Effect.suspend(() => {
      this.#waiting++
      if (this.#fiber !== undefined || Deferred.isDoneUnsafe(this.#outcome)) return Effect.void
      return Effect.map(Effect.forkIn(this.#run, this.terms.client.scope), (fiber) => {
        this.#fiber = fiber
        fiber.addObserver(() => this.#stopped(fiber))
      })
    })
    const end = Effect.suspend(() => {
      this.#waiting--
      const fiber = this.#fiber
      if (this.#waiting > 0 || fiber === undefined) return Effect.void
      this.#fiber = undefined
      return Fiber.interrupt(fiber)
    })
    return Effect.acquireRelease(begin, () => end)
  }

  /** Handles the interruption of the fiber while readers waited: its owner has ended. */
  #stopped(fiber: Fiber.Fiber<void>): void {
    if (this.#fiber !== fiber) return
    this.#fiber = undefined
    if (!Deferred.isDoneUnsafe(this.#outcome)) this.#end(Exit.fail(withHandle(clientClosed(this.id), this.handle)))
  }

  // ---- following the task

  get #run(): Effect.Effect<void> {
    return this.#poller.run.pipe(
      Effect.flatMap((end) => this.#concluded(end)),
      Effect.exit,
      Effect.flatMap((exit) => this.#over(exit))
    )
  }

  /** Receives a status. A final one becomes a state once the result was read. */
  receive(received: TaskStatus): void {
    this.latest = received
    if (!isFinal(received)) this.#become(stateOf(received, this.terms.reports?.latest))
  }

  /** Publishes a state with the new progress. */
  reported(): void {
    if (!isFinal(this.latest)) this.receive(this.latest)
  }

  #become(state: State): void {
    this.#state = state
    this.#notices.publish(state)
  }

  /** The result of a task that has ended, decoded and validated like that of its call. */
  #concluded(end: End): Effect.Effect<CallToolResult, ClientError> {
    const { client, handle: { tool }, reports, timeout } = this.terms
    const progress = reports?.latest
    switch (end._tag) {
      case "Cancelled":
        this.#become(endOf(this.latest, progress, { status: "cancelled" }))
        return Effect.fail(taskCancelled(this.id, this.latest.statusMessage, this.cancelling))
      case "Fault":
        this.#become(endOf(this.latest, progress, { status: "failed", error: end.error }))
        return Effect.fail(fromRequest("tools/call", end.error))
      case "Result": {
        const connection = client.supervisor.last
        const read = readToolResult(client, connection, end.raw)
        if (Result.isFailure(read)) return Effect.fail(read.failure)
        const result = read.success
        this.#become(endOf(this.latest, progress, { status: "completed", result }))
        const rounded = roundedInteger(tool ?? this.id, end.raw, result, this.terms)
        if (rounded !== undefined) return Effect.fail(rounded)
        const checking = tool === undefined
          ? undefined
          : checkToolResult(client, connection, tool, result, { timeout }, client.supervisor.now())
        return Effect.as(checking ?? Effect.void, result)
      }
    }
  }

  /** Ends the states. Cancels a task that goes on although nothing waits for it. */
  #over(exit: Exit.Exit<CallToolResult, ClientError>): Effect.Effect<void> {
    if (Exit.isSuccess(exit) || isFinal(this.#state)) return Effect.sync(() => this.#end(exit))
    if (Exit.hasInterrupts(exit)) return Effect.void
    const { handle } = this
    const { isGone } = this.#poller
    return Effect.andThen(
      isGone ? Effect.void : this.left,
      Effect.sync(() => this.#end(isGone ? exit : Exit.mapError(exit, (error) => withHandle(error, handle))))
    )
  }

  #end(exit: Exit.Exit<CallToolResult, ClientError>): void {
    const { client: { tasks }, reports } = this.terms
    tasks.dismiss(reports)
    // A task that ended with a failed or cancelled state does not fail the stream of states.
    if (Exit.isFailure(exit) && !isFinal(this.#state)) {
      const failure = Exit.findErrorOption(exit)
      this.#failed = failure._tag === "Some" ? failure.value : clientClosed(this.id)
    }
    this.#notices.end()
    Deferred.doneUnsafe(this.#outcome, exit)
  }
}
