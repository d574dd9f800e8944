/**
 * The contributions to a console: a source returns a part of the tree, and interrupts nodes of it or runs their actions.
 *
 * The console has a source for its server. A package with work of its own, such as a store of tasks, adds another one.
 *
 * @example
 * const Jobs = ConsoleSource.layer({
 *   name: "jobs",
 *   read: ({ limit }) => Effect.map(listJobs(limit), ({ jobs, total }) => ({
 *     nodes: [
 *       { id: "all", kind: "group", label: "Jobs", state: "running", more: { total, after: jobs.at(-1)?.id } },
 *       ...jobs.map(({ id, name }) => ({ id, parent: "all", kind: "task", label: name, state: "running" }))
 *     ]
 *   }))
 * })
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"

/** The kinds of nodes that the console knows an icon for. Any other text is a kind too. */
export type Kind =
  | "server"
  | "session"
  | "request"
  | "task"
  | "step"
  | "question"
  | "stream"
  | "subscription"
  | "queue"
  | "worker"
  | "group"
  | "problem"
  | "failure"
  | (string & {})

/** The states of nodes that have a color. Any other text is a state too. */
export type State =
  | "running"
  | "waiting"
  | "queued"
  | "idle"
  | "stopping"
  | "paused"
  | "lost"
  | "done"
  | "failed"
  | "completed (error)"
  | (string & {})

/** Progress of a node. */
export interface Progress {
  readonly progress: number
  readonly total?: number | undefined
  readonly message?: string | undefined
}

/** Something that a viewer can do with a node, besides interrupting it. */
export interface Action {
  /** Names the action to its source: 1 to 100 characters, unique in its node. An action with a longer name is left out. */
  readonly name: string
  /** The text of its button. The console shortens it to 60 characters. */
  readonly label: string
  /**
   * The effect of the action, for the viewer to confirm first. The console shortens it to 600 characters. Without it the action runs
   * at once.
   */
  readonly confirm?: string | undefined
}

/** The outcome of an action. */
export interface ActionResult {
  /** Whether it was done. `false`: there was nothing to do, and `message` says why. */
  readonly isDone: boolean
  /** A text for the viewer, such as the id of a new task. The console shortens it to 200 characters. */
  readonly message?: string | undefined
}

/** A row of the console. Its texts may come from clients: the console escapes and shortens them. */
export interface Node {
  /** Unique in its source, and unchanged as long as the node exists. */
  readonly id: string
  /** The id of its parent, in the same source. A node without one is at the top. */
  readonly parent?: string | undefined
  readonly kind: Kind
  readonly label: string
  readonly state: State
  /** The reason why it waits. */
  readonly waitsFor?: string | undefined
  /** Other important facts about it, such as counts. The list shows it where `waitsFor` is absent; `details` does not. */
  readonly summary?: string | undefined
  /** When it began, in milliseconds of Unix time. */
  readonly since?: number | undefined
  readonly progress?: Progress | undefined
  /** The id of the principal that it belongs to. */
  readonly principal?: string | undefined
  readonly traceId?: string | undefined
  /** Further values, in the order in which they are shown. */
  readonly details?: { readonly [name: string]: string | number | boolean } | undefined
  /** Whether `interrupt` of its source can end it. */
  readonly canInterrupt?: boolean | undefined
  /** The actions that viewers can run on it, by `act` of its source. The console shows the first 10. */
  readonly actions?: ReadonlyArray<Action> | undefined
  /** Its children that were left out: how many it has in all, and the position of the last one that is included. */
  readonly more?: { readonly total: number; readonly after?: string | undefined } | undefined
}

/** A question to a source. */
export interface Query {
  /** The most children of one node to return, where the source stores more than it can list. At least 1. */
  readonly limit: number
  /** The most nodes to return. */
  readonly maxRows: number
  /** Whether the details may have arguments and results: data of users. */
  readonly showPayloads: boolean
}

/** A question for the children of a node after those that a source has returned. */
export interface MoreQuery extends Query {
  readonly parent: string
  /** The position that `Node.more` or the last page has returned. */
  readonly after: string | undefined
}

/** Nodes, each after its parent. */
export interface Page {
  readonly nodes: ReadonlyArray<Node>
  /** The position after the last node, if there are further ones. Only `more` returns one. */
  readonly after?: string | undefined
}

/** A part of the tree. */
export interface Source {
  /** Unique among the sources of a console, without a colon. */
  readonly name: string
  /**
   * Whether all processes of a server with `workers` have the same nodes, such as those of a database: `false` by default.
   * A console reads a shared source in one process, and any other one in all of them.
   */
  readonly isShared?: boolean | undefined
  /**
   * Returns the present nodes. It is called once per second while viewers are connected, and never otherwise. A failure is
   * shown as a node, and logged at the level `Debug`.
   */
  readonly read: (query: Query) => Effect.Effect<Page, unknown>
  /**
   * Returns further children of a node that has `more`. Called when a viewer asks for them, so that a store of 100,000
   * tasks is read by pages.
   */
  readonly more?: ((query: MoreQuery) => Effect.Effect<Page, unknown>) | undefined
  /**
   * Interrupts a node. Returns `false` if it has ended, or does not exist. `viewer`: the id of the principal who asks for
   * it, in a console with `protect`.
   */
  readonly interrupt?: ((id: string, viewer?: string) => Effect.Effect<boolean, unknown>) | undefined
  /**
   * Runs an action of a node. Returns `undefined` if the node does not exist or does not offer the action at this moment:
   * the console passes every id and name that a viewer sends, and does not compare them with the nodes that it has read.
   * `viewer`: see `interrupt`.
   *
   * @example
   * const act = (id: string, action: string) =>
   *   action === "retry" && failed.has(id)
   *     ? Effect.map(retry(id), (job) => ({ isDone: true, message: `The new job is ${job}` }))
   *     : Effect.undefined
   */
  readonly act?:
    | ((id: string, action: string, viewer?: string) => Effect.Effect<ActionResult | undefined, unknown>)
    | undefined
}

/**
 * The sources of the consoles of a program, besides their servers. A layer of a source needs it, and so does a console
 * that shows them.
 */
export class ConsoleSources extends Context.Service<ConsoleSources, {
  /** The present sources. */
  readonly all: ReadonlyMap<string, Source>
  /** Adds a source until the scope closes. Dies if there is one of this name, or if the name has a colon. */
  readonly add: (source: Source) => Effect.Effect<void, never, Scope.Scope>
}>()("@skein/console/ConsoleSources") {
  /** No sources, to add some. */
  static readonly layer: Layer.Layer<ConsoleSources> = /* @__PURE__ */ Layer.sync(ConsoleSources, () => {
    const all = new Map<string, Source>()
    return {
      all,
      add: (source) =>
        Effect.acquireRelease(
          Effect.suspend(() => {
            const { name } = source
            if (all.has(name) || name === "server" || name.includes(":")) {
              return Effect.die(new TypeError(`A console cannot have a source with the name ${JSON.stringify(name)}`))
            }
            return Effect.sync(() => void all.set(name, source))
          }),
          () => Effect.sync(() => void all.delete(source.name))
        )
    }
  })
}

/**
 * Adds a source to the consoles of a program.
 *
 * @example
 * const Program = Console.layer().pipe(
 *   Layer.provide(ConsoleSource.layer(jobs)),
 *   Layer.provide(ConsoleSource.ConsoleSources.layer)
 * )
 */
export const layer = (source: Source): Layer.Layer<never, never, ConsoleSources> =>
  Layer.effectDiscard(Effect.flatMap(ConsoleSources, ({ add }) => add(source)))
