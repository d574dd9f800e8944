/**
 * The contributions to a console: a source returns a part of the tree, and interrupts what it has returned.
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
  | "group"
  | "problem"
  | (string & {})

/** The states of nodes that have a color. Any other text is a state too. */
export type State =
  | "running"
  | "waiting"
  | "queued"
  | "idle"
  | "stopping"
  | "done"
  | "failed"
  | (string & {})

/** Progress of a node. */
export interface Progress {
  readonly progress: number
  readonly total?: number | undefined
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
  /** What it waits for. */
  readonly waitsFor?: string | undefined
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
   * Returns the present nodes. It is called once per `interval` while somebody looks, and never otherwise. A failure is
   * shown as a node, and logged at the level `Debug`.
   */
  readonly read: (query: Query) => Effect.Effect<Page, unknown>
  /**
   * Returns further children of a node that has `more`. Called when a viewer asks for them, so that a store of 100,000
   * tasks is read by pages.
   */
  readonly more?: ((query: MoreQuery) => Effect.Effect<Page, unknown>) | undefined
  /** Interrupts a node. Returns `false` if it has ended, or does not exist. */
  readonly interrupt?: ((id: string) => Effect.Effect<boolean, unknown>) | undefined
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
