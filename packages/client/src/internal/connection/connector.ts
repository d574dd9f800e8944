/**
 * Opens the connections of a client and negotiates. If the server exits because of the probe, it opens another one.
 */
import * as Revision from "@skein/protocol/Revision"
import type { Transport } from "@skein/runtime/Connection"
import type * as Peer from "@skein/runtime/Peer"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { type ClientError, NegotiationFailed } from "../../ClientError.ts"
import type { ServerProfile } from "../../ServerProfile.ts"
import { type CallClock, CurrentCallClock } from "../base/callClock.ts"
import { clientError } from "../base/errors.ts"
import { Connected, type SharedState } from "./connected.ts"
import { type Agreement, type NegotiatedConnection, readServerProfile, serverProfileOf } from "./connection.ts"
import { initialize, probe, resume, type Settings } from "./handshake.ts"
import { fromConnect, isRefuted } from "./handshakeFailure.ts"
import { heartbeat } from "./heartbeat.ts"
import type { ConnectionSource, ScopeListener } from "./supervisor.ts"

type Handshake = (peer: Peer.Peer, settings: Settings) => Effect.Effect<Agreement, ClientError, Scope.Scope>

/** Opens the connections of one client. */
export class Connector implements ConnectionSource {
  readonly #transport: Transport
  readonly #shared: SharedState

  constructor(transport: Transport, shared: SharedState) {
    this.#transport = transport
    this.#shared = shared
  }

  get context(): Context.Context<never> {
    return this.#shared.context
  }

  get callClock(): CallClock {
    return this.#shared.callClock
  }

  /**
   * Opens a connection in a scope that is passed to `owned` before anything runs in it. The errors are those of
   * `Client.make`.
   *
   * A server profile that can be used skips the probe. In the session-based revisions, if the handshake fails because of
   * the profile, another handshake runs without it. The stateless revision has no handshake: the connection `isAssumed`,
   * and a caller that refutes the assumption opens the next connection with `fresh`.
   */
  open(
    last: NegotiatedConnection | undefined,
    fresh: boolean,
    owned: ScopeListener
  ): Effect.Effect<NegotiatedConnection, ClientError> {
    const settings = this.#handshakeSettings
    if (settings.revisions.length === 0) {
      return Effect.fail(clientError(NegotiationFailed, "The option `revisions` names no revision"))
    }
    return Effect.clockWith((clock) => {
      const stored = fresh ? undefined : this.#usable(this.#profileAfter(last), settings)
      const profile = stored === undefined
        ? undefined
        : this.#unexpired(stored, settings, clock.currentTimeMillisUnsafe())
      return profile === undefined
        ? this.#negotiate(settings, owned)
        : Effect.catchIf(this.#assume(profile, settings, owned), isRefuted, () => this.#negotiate(settings, owned))
    })
  }

  get #handshakeSettings(): Settings {
    const shared = this.#shared
    const { options } = shared
    const revisions = Revision.all.filter((revision) => options.revisions?.includes(revision) ?? true)
    return {
      revisions,
      sessions: revisions.filter((revision) => Revision.era(revision) === "session"),
      stateless: revisions.filter((revision) => Revision.era(revision) === "stateless"),
      probeTimeout: options.probeTimeout ?? this.#transport.probeTimeout ?? "3 seconds",
      shared
    }
  }

  /** The server profile that a connection is opened with after another one, or first. */
  #profileAfter(last: NegotiatedConnection | undefined): ServerProfile | undefined {
    const { serverProfile } = this.#shared.options
    if (last?.agreement.silence !== undefined) return serverProfileOf(last) ?? serverProfile
    // "Clients SHOULD cache the result for the lifetime of […] origin (HTTP)": the next session is opened without a
    // probe. In the stateless revision, only the probe shows whether the server is reachable again.
    if (last?.isStateless === false && last.httpMode !== undefined) return serverProfileOf(last)
    return last?.isStateless === true && last.isAssumed !== true ? undefined : serverProfile
  }

  /** A stored server profile, if it can be used. */
  #usable(stored: ServerProfile | undefined, { revisions }: Settings): ServerProfile | undefined {
    if (stored === undefined || stored === null) return undefined
    const profile = readServerProfile(stored)
    if (profile === undefined) this.#shared.warn("serverProfile is malformed and was ignored")
    return profile !== undefined && revisions.includes(profile.revision) ? profile : undefined
  }

  /**
   * The profile with the time of its negotiation; `undefined` if a probe must show whether the server has learned the
   * stateless revision since.
   */
  #unexpired(profile: ServerProfile, { stateless }: Settings, now: number): ServerProfile | undefined {
    const { negotiatedAt = now, revision } = profile
    if (Revision.era(revision) === "stateless" || stateless.length === 0) return profile
    if (negotiatedAt > now) return { ...profile, negotiatedAt: now }
    return now - negotiatedAt > this.#shared.bounds.maxProfileAge ? undefined : { ...profile, negotiatedAt }
  }

  #assume(
    profile: ServerProfile,
    settings: Settings,
    owned: ScopeListener
  ): Effect.Effect<NegotiatedConnection, ClientError> {
    const transport = this.#transport
    const connecting = profile.httpMode === undefined ? transport.connect : transport.connectWith?.(profile.httpMode)
    return Effect.map(this.#attempt(resume(profile), settings, owned, connecting), (connection) => {
      connection.isAssumed = connection.isStateless
      return connection
    })
  }

  #negotiate(settings: Settings, owned: ScopeListener): Effect.Effect<NegotiatedConnection, ClientError> {
    if (settings.stateless.length === 0) return this.#attempt(initialize, settings, owned)
    const probed = this.#attempt(probe, settings, owned)
    if (settings.sessions.length === 0) return probed
    // Some servers of the session-based revisions exit when they get a request before `initialize`. A request that is
    // lost while the connection goes on is not such an exit.
    return Effect.catchIf(
      probed,
      ({ reason }) => reason._tag === "Closed" && reason.end !== undefined,
      () => this.#attempt(initialize, settings, owned)
    )
  }

  /**
   * Opens one connection, runs its handshake, and what belongs to it until it ends, in a separate scope. If that fails,
   * the scope is closed first.
   */
  #attempt(
    handshake: Handshake,
    settings: Settings,
    owned: ScopeListener,
    connecting = this.#transport.connect
  ): Effect.Effect<Connected, ClientError> {
    return Effect.suspend(() => {
      const scope = Scope.makeUnsafe()
      owned(scope)
      return Effect.gen({ self: this }, function*() {
        const opened = yield* Effect.provideService(
          Effect.mapError(connecting, fromConnect),
          CurrentCallClock,
          this.callClock
        )
        const connection = yield* Effect.uninterruptible(Effect.suspend(() => {
          const connection = new Connected(opened, this.#shared, settings.sessions.length > 0)
          return Effect.as(connection.closeWith(scope), connection)
        }))
        const { authorizationContext = Effect.undefined, extensions } = opened
        const context = yield* authorizationContext
        const agreement = yield* handshake(connection.peer, { ...settings, authorizationContext: context, extensions })
        // A request of the handshake may have signed a person in.
        connection.agreed(agreement, yield* authorizationContext)
        yield* this.#shared.answers.opened(connection)
        const beats = this.#shared.options.heartbeat
        if (beats !== undefined) yield* heartbeat(beats, connection)
        return connection
      }).pipe(
        Scope.provide(scope),
        Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
      )
    })
  }
}
