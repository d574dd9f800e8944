/**
 * The positions of entries in lists: the order in which the author wrote the definitions.
 *
 * Layers that are merged are built concurrently, so the order in which they register entries depends on how long each of
 * them takes. `placed` wraps the memo map that the layers are built with. It sees every layer when it starts, and all
 * layers of a merge start in the order in which they were written, before any of them continues.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"

/** Where an entry is in a list: the path of the layer that added it. Equal paths are ordered by name. */
export type Place = ReadonlyArray<number>

/** Compares two places. */
export const comparePlaces = (one: Place, other: Place): number => {
  const length = Math.min(one.length, other.length)
  for (let i = 0; i < length; i++) {
    const difference = one[i]! - other[i]!
    if (difference !== 0) return difference
  }
  return one.length - other.length
}

/** A value with the place of the layer that added it. */
interface Placed<A> {
  readonly place: Place
  readonly value: A
}

/** Values in the order of the definitions that add them. */
export class PlacedList<A> {
  all: ReadonlyArray<A> = []
  #placed: ReadonlyArray<Placed<A>> = []

  /** Adds a value until the scope closes. While the server runs it is added after the present ones. */
  add(value: A): Effect.Effect<void, never, Scope.Scope> {
    return Effect.asVoid(Effect.acquireRelease(
      Effect.withFiber((fiber) => {
        const problem = this.problem(value)
        if (problem !== undefined) return Effect.die(problem)
        const added = { place: placeOf(fiber, []), value }
        const before = this.#placed.findLastIndex(({ place }) => comparePlaces(place, added.place) <= 0)
        this.#set(this.#placed.toSpliced(before + 1, 0, added))
        return Effect.succeed(added)
      }),
      (added) => Effect.sync(() => this.#set(this.#placed.filter((other) => other !== added)))
    ))
  }

  #set(placed: ReadonlyArray<Placed<A>>): void {
    this.#placed = placed
    this.all = placed.map(({ value }) => value)
    this.changed()
  }

  /** Why a value cannot be added. */
  protected problem(_value: A): Error | undefined {
    return undefined
  }

  /** Called after each change of `all`. */
  protected changed(): void {}
}

/** The last number of the path of an entry that is added while the server runs. It follows all others of its part. */
const runtime = Number.MAX_SAFE_INTEGER

/** Returns the place of entries that are added to a part while the server runs. */
export const afterAll = (part: Place): Place => [...part, runtime]

/** The layers that start in one fiber, while one layer is built. */
interface Track {
  readonly index: number
  next: number
}

const placementKey: unique symbol = Symbol.for("@skein/server/placement")

/** The places inside of one layer that is being built. */
class Placement {
  readonly path: Place
  readonly parent: Placement | undefined
  /** Whether the layer, or one inside of it, has registered something. */
  registers = false
  // Merged layers have a fiber each. A layer that starts late, as the one that `Layer.unwrap` returns, is in the fiber
  // of the layer that it belongs to.
  readonly #tracks = new Map<number, Track>()

  constructor(path: Place, parent: Placement | undefined) {
    this.path = path
    this.parent = parent
  }

  /** Returns the next place of a fiber. */
  next({ id }: Fiber.Fiber<unknown, unknown>): Place {
    let track = this.#tracks.get(id)
    if (track === undefined) this.#tracks.set(id, track = { index: this.#tracks.size, next: 0 })
    return [...this.path, track.index, track.next++]
  }

  /** Records that the layer registers something. */
  register(): void {
    if (this.registers) return
    this.registers = true
    this.parent?.register()
  }
}

type PlacedMemoMap = Layer.MemoMap & { readonly [placementKey]: Placement; readonly [knownKey]: Known }

const knownKey: unique symbol = Symbol.for("@skein/server/placement/layers")

/** The part of a server that a layer was built for first. */
interface FirstBuild {
  readonly part: object
  readonly placement: Placement
}

/** The layers that a server has built. Those of the server that it is mounted in are known to it, too. */
class Known {
  readonly #around: Known | undefined
  readonly #own = new WeakMap<Layer.Any, FirstBuild>()

  constructor(around?: Known) {
    this.#around = around
  }

  get(layer: Layer.Any): FirstBuild | undefined {
    return this.#own.get(layer) ?? this.#around?.get(layer)
  }

  set(layer: Layer.Any, first: FirstBuild): void {
    this.#own.set(layer, first)
  }
}

const isPlaced = (memoMap: Layer.MemoMap | undefined): memoMap is PlacedMemoMap =>
  memoMap !== undefined && placementKey in memoMap

/** Makes a memo map that passes places on. `own` has the definitions that another part has registered, too. */
const make = (
  inner: Layer.MemoMap,
  own: Layer.MemoMap,
  part: object,
  placement: Placement,
  known: Known
): PlacedMemoMap => {
  const getOrElseMemoize: Layer.MemoMap["getOrElseMemoize"] = (layer, scope, build) =>
    Effect.withFiber((fiber) => {
      const inside = new Placement(placement.next(fiber), placement)
      const from = (memoMap: Layer.MemoMap) =>
        memoMap.getOrElseMemoize(layer, scope, (_, scope) => {
          const nested = make(inner, own, part, inside, known)
          return Effect.provideService(build(nested, scope), Layer.CurrentMemoMap, nested) as never
        }) as ReturnType<typeof build>
      const first = known.get(layer)
      if (first === undefined) known.set(layer, { part, placement: inside })
      if (first === undefined || first.part === part) return from(inner)
      // Another part has built the layer. Services are shared, but definitions are registered in each part.
      return Effect.flatMap(from(inner), (context) => first.placement.registers ? from(own) : Effect.succeed(context))
    })
  return Object.assign(Object.create(inner), { getOrElseMemoize, [placementKey]: placement, [knownKey]: known })
}

/**
 * Makes the memo map of a server. The layers that are built with it register entries in the order of the definitions. A
 * server that is mounted in another one shares the layers of services with it, and registers its own definitions, even if
 * the other one has them too.
 */
export const placed = (context: Context.Context<never>): Layer.MemoMap => {
  const current = Context.getOrUndefined(context, Layer.CurrentMemoMap)
  return make(
    Layer.CurrentMemoMap.forkOrCreate(context),
    Layer.makeMemoMapUnsafe(),
    {},
    new Placement([], undefined),
    new Known(isPlaced(current) ? current[knownKey] : undefined)
  )
}

/**
 * Makes the memo map for the definitions of a part of a server, such as a mounted one. Layers of services are shared with
 * the rest of the server. A definition that the server has elsewhere too is registered in this part again.
 */
export const placedInPart = (
  current: Layer.MemoMap,
  part: object,
  fiber: Fiber.Fiber<unknown, unknown>
): { readonly memoMap: Layer.MemoMap; readonly place: Place } => {
  if (!isPlaced(current)) {
    const placement = new Placement([runtime], undefined)
    const memoMap = make(current, Layer.makeMemoMapUnsafe(), part, placement, new Known())
    return { memoMap, place: placement.path }
  }
  const placement = new Placement(current[placementKey].next(fiber), current[placementKey])
  const inner = Object.getPrototypeOf(current) as Layer.MemoMap
  return {
    memoMap: make(inner, Layer.makeMemoMapUnsafe(), part, placement, current[knownKey]),
    place: placement.path
  }
}

/**
 * Returns a function that makes the memo maps of definitions which are added later, at places behind that of the layer that is
 * being built now: `[0]`, `[1]` and so on. Without such a layer they are behind all definitions.
 */
export const placesHere = (fiber: Fiber.Fiber<unknown, unknown>): (at: number) => Layer.MemoMap => {
  const current = currentMemoMap(fiber)
  if (!isPlaced(current)) {
    const shared = Layer.makeMemoMapUnsafe()
    return (at) => make(shared, Layer.makeMemoMapUnsafe(), {}, new Placement([runtime, at], undefined), new Known())
  }
  const placement = current[placementKey]
  placement.register()
  const here = placement.next(fiber)
  const inner = Object.getPrototypeOf(current) as Layer.MemoMap
  return (at) =>
    make(inner, Layer.makeMemoMapUnsafe(), {}, new Placement([...here, at], undefined), new Known(current[knownKey]))
}

/** Returns the next place in a memo map that `placedInPart` has made. */
export const nextPlace = (memoMap: Layer.MemoMap, fiber: Fiber.Fiber<unknown, unknown>): Place =>
  isPlaced(memoMap) ? memoMap[placementKey].next(fiber) : []

/**
 * Returns the place of a definition that a fiber adds now: that of the layer which is being built, or after all others of its
 * `part` while the server runs.
 */
export const placeOf = (fiber: Fiber.Fiber<unknown, unknown>, part: Place): Place => {
  const memoMap = currentMemoMap(fiber)
  if (!isPlaced(memoMap)) return afterAll(part)
  const placement = memoMap[placementKey]
  placement.register()
  return placement.next(fiber)
}

const currentMemoMap = ({ context }: Fiber.Fiber<unknown, unknown>): Layer.MemoMap | undefined =>
  context.mapUnsafe.get(Layer.CurrentMemoMap.key) as Layer.MemoMap | undefined
