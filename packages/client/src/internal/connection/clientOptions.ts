/**
 * The options of a client. `Client.ts` exports them; the modules below it read their own part.
 */
import type { Implementation } from "@skein/protocol/Implementation"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"
import type * as SchemaValidation from "@skein/protocol/SchemaValidation"
import type { Limits as ConnectionLimits } from "@skein/runtime/Limits"
import type * as Duration from "effect/Duration"
import type { Middleware } from "../../Middleware.ts"
import type * as Reconnect from "../../Reconnect.ts"
import type * as RemoteTask from "../../RemoteTask.ts"
import type * as ResponseCache from "../../ResponseCache.ts"
import type { ServerProfile } from "../../ServerProfile.ts"
import type { Telemetry } from "../../Telemetry.ts"
import type { FixedBounds } from "../base/fixedBounds.ts"
import type { Heartbeat } from "./heartbeat.ts"

/** The bounds of a client: those of each connection, and its own. */
export interface Limits extends ConnectionLimits {
  /**
   * How many items `listTools` and the other lists collect, and of how many tools the client remembers the definition:
   * 10,000 by default. A longer list fails with `LimitExceeded`. Raise it for a server with more items.
   */
  readonly maxItems?: number | undefined
  /**
   * How many notifications wait for each reader of `notifications`, `logs` or `changes`: 256 by default. A full buffer
   * drops its oldest notification; a stream of `changes` then has a `Gap`. Raise it for a server that sends bursts.
   */
  readonly maxBufferedNotifications?: number | undefined
  /**
   * How many times one request may be answered with input requests (`input_required`) before it fails with
   * `LimitExceeded`: 16 by default, as the servers of Skein allow. The host answers input requests with the services `Elicitation`, `Sampling` and
   * `Roots`. Raise it for a server that asks for each value on its own.
   */
  readonly maxRounds?: number | undefined
  /**
   * How many times a request whose response was lost is sent again: 3 by default; then it fails. Only requests that did
   * not reach the server or that are repeatable are sent again (see `RequestOptions`), within the timeouts of the
   * request. Raise it where connections break often. With 0 no request is sent again.
   */
  readonly maxRetries?: number | undefined
}

const defaultLimits = { maxItems: 10_000, maxBufferedNotifications: 256, maxRounds: 16, maxRetries: 3 }

/** A bound that connections do not have, by its name. */
export const limitOf = ({ limits }: Options, name: keyof typeof defaultLimits): number =>
  limits?.[name] ?? defaultLimits[name]

/** The options of a client. All of them are optional. */
export interface Options {
  /** Name and version of this client, as it sends them to the server. Default `{ name: "skein", version: "0.2.0" }`. */
  readonly info?: Implementation | undefined
  /**
   * The revisions that the client accepts. Default: all. A server that speaks none of them is refused with
   * `NegotiationFailed`, also with a stored `serverProfile`. Without the stateless revision the client does not probe the
   * server; without a session-based one it never sends `initialize`.
   */
  readonly revisions?: ReadonlyArray<Revision.Revision> | undefined
  /**
   * How long the client waits for the response to `server/discover` before it sends `initialize`: 3 seconds by default,
   * 10 seconds for a process. Raise it for a server that starts slowly. A slower server of the stateless revision may open a session on this connection; its late
   * response then applies to the next one. If `revisions` has no session-based revision, the request timeout applies
   * instead.
   */
  readonly probeTimeout?: Duration.Input | undefined
  /**
   * The extensions that the host supports, by their identifiers, with their settings. The client declares them in its
   * capabilities, beside those of its credentials and of tasks. Default: none.
   *
   * @example
   * const extensions = { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } }
   */
  readonly extensions?: Readonly<Record<string, JsonObject>> | undefined
  /** The bounds of the client and of each connection, and the timeouts of requests. */
  readonly limits?: Limits | undefined
  /**
   * Whether a method fails with `Unsupported`, and sends nothing, when the server did not declare its capability.
   * Default true. Turn it off for a server that supports more than it declares.
   */
  readonly enforceCapabilities?: boolean | undefined
  /** Functions around each call, outermost first: see `Middleware`. Default: none. */
  readonly middleware?: ReadonlyArray<Middleware> | undefined
  /** Makes a span for each request: `Telemetry.make()`. Default: no spans. */
  readonly telemetry?: Telemetry | undefined
  /**
   * The name that the host gives this server. Handlers of input requests receive it as the `label` of the
   * `RequestingServer`. Default: none; in a pool, the server's name there.
   */
  readonly label?: string | undefined
  /**
   * Whether a server may send input requests as tasks (2025-11-25): true by default. It then receives the id of a task at
   * once, and fetches the answer later, so that no request stays open while a user thinks. The client declares this for
   * each service that the host provides (`Sampling`, `Elicitation`), and the handlers do not change. With `false` it
   * answers such requests like all others.
   *
   * A task belongs to its connection: the next connection does not have it. Its handler runs until it returns an answer,
   * the server cancels the task, its time is up (24 hours at most), or the connection ends. Meanwhile the timeouts of the
   * client's own calls are paused, as for any input request. At most 100 tasks of a connection run at the same time.
   */
  readonly taskReceiver?: boolean | undefined
  /**
   * Whether the result of a listed tool is validated against its `outputSchema` ("Clients SHOULD validate structured
   * results against this schema"). Default true, with the default bounds of `SchemaValidation`; an object sets other
   * bounds. A result that does not match, or that takes more steps than the bounds allow, fails with `InvalidResponse`.
   * Before it fails for the first time, the tools are listed again, since the tool may have changed. A schema that
   * cannot be used validates nothing, and is logged. A result without structured content is returned, and logged once:
   * see `requireStructuredContent`.
   */
  readonly validateOutput?: boolean | SchemaValidation.Options | undefined
  /**
   * Whether the result of a listed tool with an `outputSchema` fails with `InvalidResponse` if it has no structured
   * content ("Servers MUST provide structured results that conform to this schema"). Default false: the result is
   * returned, since its text may be enough, and a warning is logged once for each tool. It does nothing with
   * `validateOutput: false`.
   */
  readonly requireStructuredContent?: boolean | undefined
  /**
   * Whether and how a lost connection is reopened. By default the transport decides, with the defaults of the policy:
   * HTTP connections are reopened; a process that exits is only started again if this option is `true` or a policy. The
   * first connection is attempted once.
   */
  readonly reconnect?: Reconnect.Policy | boolean | undefined
  /**
   * Checks the server every `interval` with `ping` or `server/discover`. If no response comes within `timeout`, the
   * connection ends as lost, and `reconnect` applies. Default: off.
   */
  readonly heartbeat?: Heartbeat | undefined
  /**
   * How responses are cached, if the server allows it. Default: in memory, for this client alone. `false` turns the
   * cache off. See `ResponseCache`.
   */
  readonly cache?: ResponseCache.Options | false | undefined
  /**
   * How tasks are followed. With `false` the client does not declare the extension, and sends no call as a task. See
   * `RemoteTask`.
   */
  readonly tasks?: RemoteTask.Options | boolean | undefined
  /** The profile of the server from an earlier connection: see `Client.serverProfile`. */
  readonly serverProfile?: ServerProfile | undefined
}

/** A client with its options. */
export interface Configured {
  readonly options: Options
  /** The bounds that are not options. */
  readonly bounds: FixedBounds
  /** Logs a warning, from code that does not run in an effect. */
  readonly warn: (...message: ReadonlyArray<unknown>) => void
}
