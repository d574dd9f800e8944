/**
 * The streams of changes of a client.
 */
import type { Notification } from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import type { TransportError } from "@skein/runtime/TransportError"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Change, Filter, Options } from "../../Changes.ts"
import type { ClientError } from "../../ClientError.ts"
import * as Reconnect from "../../Reconnect.ts"
import type { ClientContext } from "../calls/context.ts"
import { isEmpty, unsupported, wantedOf } from "./filter.ts"
import { follow, type Run } from "./follow.ts"
import { ChangeQueue } from "./queue.ts"
import { listen } from "./listen.ts"
import { SessionChanges } from "./sessionChanges.ts"

const streamOf = (run: Run, options: Options, sessionChanges: SessionChanges): Stream.Stream<Change, ClientError> => {
  const { backoff } = run.client.supervisor.timeouts
  const policy = options.reconnect === undefined ? backoff : Reconnect.resolve(options.reconnect)
  const following = follow(
    run,
    policy,
    (connection, onActive) => (connection.isRequestEra ? listen(run) : sessionChanges.watch(run))(connection, onActive)
  )
  const started = Effect.forkScoped(
    Effect.catchCause(following, (cause) => Effect.sync(() => run.queue.fail(cause))),
    { startImmediately: true }
  )
  return Stream.unwrap(Effect.as(started, Stream.fromPull(Effect.succeed(run.queue.batch))))
}

/** Makes the streams, and passes notifications to their runs. */
export class Changes {
  readonly #bufferSize: number
  readonly #sessionChanges: SessionChanges

  /** `bufferSize` is the default of the runs. Requests after the end of a run live in the scope. */
  constructor(bufferSize: number, scope: Scope.Scope) {
    this.#bufferSize = bufferSize
    this.#sessionChanges = new SessionChanges(scope)
  }

  /** A stream of the changes on the server. */
  on(client: ClientContext, filter: Filter, options: Options = {}): Stream.Stream<Change, ClientError> {
    return Stream.suspend(() => {
      const wanted = wantedOf(filter)
      if (isEmpty(wanted)) return Stream.fail(unsupported("The filter selects nothing"))
      const queue = new ChangeQueue(options.maxBufferedChanges ?? this.#bufferSize)
      const timeout = options.timeout ?? client.supervisor.timeouts.timeout
      return streamOf({ client, wanted, queue, timeout }, options, this.#sessionChanges)
    })
  }

  /** Handles each notification of the server. */
  onNotification(notification: Notification): void {
    this.#sessionChanges.onNotification(notification)
  }

  /** Notifications may have been missed. With an error, no further ones will arrive on the connection. */
  onGap(error: TransportError | undefined): void {
    this.#sessionChanges.onGap(error)
  }
}
