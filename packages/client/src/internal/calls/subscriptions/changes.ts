/**
 * The streams of changes of a client. A run subscribes, and subscribes again when a subscription ends, within the bounds
 * of a policy.
 */
import { EmptyResult } from "@skein/protocol/Message"
import * as Method from "@skein/protocol/Method"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Change, Filter, Options } from "../../../Changes.ts"
import { type ClientError, Closed } from "../../../ClientError.ts"
import * as Reconnect from "../../../Reconnect.ts"
import { clientError, delayAfter, endOf, isTransient } from "../../base/errors.ts"
import type { ClientContext } from "../context.ts"
import type { NegotiatedConnection } from "../../connection/connection.ts"
import { isEmpty, unsupported, wantedOf } from "./filter.ts"
import { ChangeQueue, type Run } from "./run.ts"
import { listen } from "./listen.ts"
import { SessionChanges } from "./sessionChanges.ts"

/**
 * Whether another subscription would fail as well. After an internal error the server is asked again if it has
 * acknowledged a subscription before.
 */
const isFinal = (error: ClientError, wasActive: boolean): boolean =>
  !isTransient(error) || (error.reason._tag === "ProtocolError" && !wasActive)

const gaveUp = (attempts: number, cause: ClientError | undefined): ClientError => {
  const why = cause === undefined ? "the server ended it" : cause.message
  const message = `Gave up the subscription after ${attempts} attempts in a row: ${why}`
  const exhausted = new Reconnect.ReconnectExhausted({ attempts, message, cause })
  return clientError(Closed, message, Method.SubscriptionsListen.name, exhausted)
}

/**
 * Sends a request if the revision is only assumed. If the assumption was wrong, the supervisor has another connection
 * afterwards.
 */
const confirmed = (
  client: ClientContext,
  connection: NegotiatedConnection
): Effect.Effect<NegotiatedConnection, ClientError> => {
  if (connection.isAssumed !== true) return Effect.succeed(connection)
  const asked = client.call({ ...Method.Discover, result: EmptyResult }, {}, { cache: "bypass" })
  return Effect.andThen(Effect.ignore(asked), Effect.suspend(() => client.supervisor.connection))
}

/** Runs one subscription after the other on the open connection. Fails with the error that ends the stream. */
const follow = (
  run: Run,
  policy: Reconnect.Resolved,
  sessionChanges: SessionChanges
): Effect.Effect<never, ClientError> =>
  Effect.gen(function*() {
    const { client: { supervisor }, queue } = run
    let connection = yield* supervisor.connection
    let attempts = 0
    let wasActive = false
    while (true) {
      connection = yield* confirmed(run.client, connection)
      const startedAt = supervisor.now()
      let isActive = false
      const subscribe = connection.isStateless ? listen(run) : sessionChanges.watch(run)
      const subscription = yield* Effect.result(subscribe(connection, (honoured) => {
        isActive = wasActive = true
        queue.offer({ _tag: "Subscribed", honoured })
      }))
      const cause = Result.isFailure(subscription) ? subscription.failure : undefined
      if (isActive) queue.offer({ _tag: "Gap", reason: cause === undefined ? "Ended" : "Lost", cause })
      if (cause !== undefined && isFinal(cause, wasActive)) return yield* cause
      if (cause !== undefined && endOf(cause) !== undefined) {
        // The supervisor bounds how often a connection is opened again.
        connection = yield* supervisor.after(connection)
        continue
      }
      if (isActive && supervisor.now() - startedAt >= Reconnect.stableAfter) attempts = 0
      if (attempts >= policy.maxAttempts) return yield* gaveUp(attempts, cause)
      const delay = yield* delayAfter(cause, policy, ++attempts)
      yield* Effect.raceFirst(Effect.sleep(delay), supervisor.ended)
      connection = yield* supervisor.connection
    }
  })

const streamOf = (run: Run, options: Options, sessionChanges: SessionChanges): Stream.Stream<Change, ClientError> => {
  const { backoff } = run.client.supervisor.timeouts
  const policy = options.reconnect === undefined ? backoff : Reconnect.resolve(options.reconnect)
  const following = follow(run, policy, sessionChanges)
  const started = Effect.forkScoped(
    Effect.catchCause(following, (cause) => Effect.sync(() => run.queue.fail(cause))),
    { startImmediately: true }
  )
  return Stream.unwrap(Effect.as(started, Stream.fromPull(Effect.succeed(run.queue.batch))))
}

/** Makes the streams, and passes notifications to their runs. */
export class Changes extends SessionChanges {
  readonly #bufferSize: number

  /** `bufferSize` is that of each run. Requests after the end of a run are made in the scope. */
  constructor(bufferSize: number, scope: Scope.Scope) {
    super(scope)
    this.#bufferSize = bufferSize
  }

  /** A stream of the changes on the server. */
  on(client: ClientContext, filter: Filter, options: Options = {}): Stream.Stream<Change, ClientError> {
    return Stream.suspend(() => {
      const wanted = wantedOf(filter)
      if (isEmpty(wanted)) return Stream.fail(unsupported("The filter selects nothing"))
      const queue = new ChangeQueue(this.#bufferSize)
      const timeout = options.timeout ?? client.supervisor.timeouts.timeout
      return streamOf({ client, wanted, queue, timeout }, options, this)
    })
  }
}
