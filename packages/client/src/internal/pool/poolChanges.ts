/**
 * The changes of a pool, for streams that may be read slowly: each run has the names of the servers that have changed
 * since its last element, so that no change is lost and memory is bounded by the number of servers.
 */
import * as Stream from "effect/Stream"
import { Broadcast } from "../base/broadcast.ts"

/** The names of the servers that have changed since the previous element of the stream. */
export interface PoolChange {
  /** Servers that were added or removed, or whose state has changed. */
  readonly servers: ReadonlyArray<string>
  /** Servers whose list of tools has changed. */
  readonly tools: ReadonlyArray<string>
  /** Servers whose list of prompts has changed. */
  readonly prompts: ReadonlyArray<string>
  /** Servers whose list of resources, or of resource templates, has changed. */
  readonly resources: ReadonlyArray<string>
}

/** A part of a server that can change. */
export type Aspect = keyof PoolChange

const aspects: ReadonlyArray<Aspect> = ["servers", "tools", "prompts", "resources"]

type Changed = { readonly [A in Aspect]: Set<string> }

const changedSince = (servers: ReadonlyArray<string>): Changed => ({
  servers: new Set(servers),
  tools: new Set(),
  prompts: new Set(),
  resources: new Set()
})

/** Collects changes for the runs of a stream. */
export class PoolChanges {
  readonly #names: () => ReadonlyArray<string>
  readonly #maxServers: number
  readonly #published = new Broadcast<readonly [Aspect, string] | undefined>(1, () => undefined)

  /** `names` returns the present servers, which are the first element of each run. */
  constructor(names: () => ReadonlyArray<string>, maxServers: number) {
    this.#names = names
    this.#maxServers = maxServers
  }

  publish(aspect: Aspect, name: string): void {
    this.#published.publish([aspect, name])
  }

  end(): void {
    this.#published.end()
  }

  get stream(): Stream.Stream<PoolChange> {
    return Stream.suspend(() => {
      const changed = changedSince(this.#names())
      const record = ([aspect, name]: readonly [Aspect, string]): boolean => {
        changed[aspect].add(name)
        // Only names of removed servers can exceed the bound: the oldest is forgotten.
        const [oldest] = changed[aspect]
        if (changed[aspect].size > 2 * this.#maxServers) changed[aspect].delete(oldest!)
        return true
      }
      const take = (): PoolChange => {
        const { prompts, resources, servers, tools } = changed
        const taken = { servers: [...servers], tools: [...tools], prompts: [...prompts], resources: [...resources] }
        for (const aspect of aspects) changed[aspect].clear()
        return taken
      }
      return this.#published.accepted((change) => change !== undefined && record(change)).pipe(
        Stream.map(take),
        Stream.filter((change) => aspects.some((aspect) => change[aspect].length > 0))
      )
    })
  }
}
