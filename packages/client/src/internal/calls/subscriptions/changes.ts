/**
 * The streams of changes of a client. A run subscribes, and subscribes again when a subscription ends, within the bounds
 * of a policy.
 */
import type { JsonObject, Notification } from "@skein/protocol/JsonRpc"
import { EmptyResult } from "@skein/protocol/Message"
import * as Method from "@skein/protocol/Method"
import * as Task from "@skein/protocol/Task"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Change, Filter, Options } from "../../../Changes.ts"
import { type ClientError, Closed } from "../../../ClientError.ts"
import * as Reconnect from "../../../Reconnect.ts"
import { clientError, delayAfter, endOf, isTransient, serverErrorOf, within } from "../../base/errors.ts"
import type { ClientContext } from "../context.ts"
import { declaring, send } from "../send.ts"
import type { NegotiatedConnection } from "../../connection/connection.ts"
import { acknowledgedFilter, changeOf, isEmpty, toSubscriptionFilter, unsupported, wantedOf } from "./filter.ts"
import { ChangeQueue, type Run, type Subscribe } from "./run.ts"
import { SessionChanges } from "./sessionChanges.ts"

const acknowledged = Method.SubscriptionsAcknowledged.name
const method = Method.SubscriptionsListen.name

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
  return clientError(Closed, message, method, exhausted)
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

const missing = (error: ClientError): ClientError =>
  serverErrorOf(error)?.reason === "MethodNotFound" ? unsupported(`The server has no ${method}`, error) : error

/**
 * Runs a subscription of 2026-07-28, one `subscriptions/listen` request whose response is its end, until the server ends
 * it or it fails. Notifications before the acknowledgment are ignored: the
 * server "MUST NOT send any notification on the subscription before it" (2026-07-28, subscriptions). Interrupting it
 * cancels the request.
 */
const listen = ({ client, queue, timeout, wanted }: Run): Subscribe<void> => (connection, onActive) =>
  Effect.suspend(() => {
    let isActive = false
    const begun = Deferred.makeUnsafe<void, ClientError>()
    const onNotification = (notification: Notification): void => {
      if (isActive) {
        const change = changeOf(notification, wanted)
        if (change !== undefined) queue.offer(change)
        return
      }
      if (notification.method !== acknowledged) return
      const honoured = acknowledgedFilter(notification.params, wanted)
      if (isEmpty(honoured)) {
        Deferred.doneUnsafe(begun, Effect.fail(unsupported("The server acknowledged none of the requested changes")))
        return
      }
      isActive = true
      onActive(honoured)
      Deferred.doneUnsafe(begun, Effect.void)
    }
    // The content of the response does not matter.
    const filter: JsonObject = { notifications: toSubscriptionFilter(wanted) as JsonObject }
    const params = wanted.taskIds.length === 0 ? filter : declaring(connection, Task.extension, filter)
    const listening = send(connection, method, params, {
      timeout: Infinity,
      maxTimeout: Infinity,
      onNotification
    })
    const { callClock } = client.supervisor
    const begins = within(callClock, Deferred.await(begun), timeout, `The server did not acknowledge ${method}`, method)
    return Effect.mapError(Effect.raceFirst(Effect.asVoid(listening), Effect.andThen(begins, Effect.never)), missing)
  })

/** Runs one subscription after the other on the open connection. Fails with the error that ends the stream. */
const follow = Effect.fnUntraced(function*(
  run: Run,
  policy: Reconnect.Resolved,
  sessionChanges: SessionChanges
): Effect.fn.Return<never, ClientError> {
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
      const { backoff, timeout } = client.supervisor.timeouts
      const policy = options.reconnect === undefined ? backoff : Reconnect.resolve(options.reconnect)
      const following = follow({ client, wanted, queue, timeout: options.timeout ?? timeout }, policy, this)
      const started = Effect.forkScoped(
        Effect.catchCause(following, (cause) => Effect.sync(() => queue.fail(cause))),
        { startImmediately: true }
      )
      return Stream.unwrap(Effect.as(started, Stream.fromPull(Effect.succeed(queue.batch))))
    })
  }
}
