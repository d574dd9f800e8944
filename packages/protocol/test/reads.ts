/**
 * Counts the reads of a value of another side, such as the schema of a remote tool: a cost that is the same on every
 * machine, as the steps of a validation are.
 */

/** A value, and how many members, items and names of it were read. */
export interface Counted<A> {
  readonly value: A
  readonly reads: () => number
}

/**
 * Wraps a JSON value so that each read of a member or an item counts, and each list of names as many as it has. Code that
 * reads a list once for each member of another one then has a number of reads that is quadratic.
 */
export const counted = <A extends object>(root: A): Counted<A> => {
  let reads = 0
  const known = new WeakMap<object, object>()
  const wrap = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null) return value
    const before = known.get(value)
    if (before !== undefined) return before
    const wrapped = new Proxy(value, {
      get: (target, key) => {
        reads++
        return wrap(Reflect.get(target, key))
      },
      has: (target, key) => {
        reads++
        return Reflect.has(target, key)
      },
      ownKeys: (target) => {
        const keys = Reflect.ownKeys(target)
        reads += keys.length
        return keys
      }
    })
    known.set(value, wrapped)
    return wrapped
  }
  return { value: wrap(root) as A, reads: () => reads }
}

/** How many values a JSON value has, itself included. */
export const sizeOf = (root: unknown): number => {
  let size = 0
  const open = [root]
  while (open.length > 0) {
    const value = open.pop()
    size++
    if (typeof value === "object" && value !== null) { for (const each of Object.values(value)) open.push(each) }
  }
  return size
}

const many = (count: number, name: (at: number) => string): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, at) => name(at))
const membersOf = (names: ReadonlyArray<string>, value: unknown) =>
  Object.fromEntries(names.map((name) => [name, value]))

/** A schema of which a part is wide, and which refers to that part from each of many places. */
const referring = (part: unknown) => ({
  type: "object",
  properties: membersOf(many(400, (at) => `p${at}`), {
    anyOf: many(50, () => "").map(() => ({ $ref: "#/$defs/part" }))
  }),
  $defs: { part }
})

/**
 * Input schemas of a hostile server: each is cheap to send, and costs a product of its parts where code reads a part once
 * for each other part.
 */
export const hostileSchemas: ReadonlyArray<readonly [title: string, schema: { readonly [key: string]: unknown }]> = [
  [
    "as many required arguments as properties",
    {
      type: "object",
      properties: membersOf(many(3_000, (at) => `p${at}`), {}),
      required: many(3_000, (at) => `p${at}`)
    }
  ],
  ["references to a wide enum", referring({ enum: many(2_000, (at) => `v${at}`) })],
  ["references to a wide const", referring({ const: many(2_000, (at) => `v${at}`) })],
  ["references to a wide object as const", referring({ const: membersOf(many(2_000, (at) => `v${at}`), 1) })],
  ["references to a wide union", referring({ anyOf: many(2_000, () => "").map(() => ({ type: "string" })) })],
  [
    "references to an object with many properties",
    referring({ properties: membersOf(many(2_000, (at) => `v${at}`), {}) })
  ],
  ["references to many required names", referring({ type: "object", required: many(2_000, (at) => `v${at}`) })],
  [
    "many types beside many keywords",
    { properties: { a: { ...membersOf(many(2_000, (at) => `x${at}`), 1), type: many(2_000, () => "string") } } }
  ],
  [
    "alternatives that refer to each other",
    {
      type: "object",
      properties: { a: { $ref: "#/$defs/part" } },
      $defs: { part: { anyOf: many(90, () => "").map(() => ({ $ref: "#/$defs/part" })) } }
    }
  ]
]
