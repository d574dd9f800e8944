/**
 * Checks trees of components: their bounds before anything else, then their schema, then the names in them.
 */
import { isObject } from "@skein/protocol/JsonRpc"
import { clip, quote } from "@skein/protocol/Text"
import * as Options from "@skein/runtime/Options"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { InvalidTree, ToolNotAllowed, TreeTooLarge, UiError } from "./UiError.ts"
import { Node } from "./uiNode.ts"

/** The bounds of a tree. */
export interface Bounds {
  /** The number of components, one inside another: 16 by default. A deeper tree is not shown. */
  readonly maxDepth?: number | undefined
  /** The number of components: 1,000 by default. A tree with more is not shown. */
  readonly maxNodes?: number | undefined
  /** The number of rows, cells, points of charts, options and arguments: 20,000 by default. More are not shown. */
  readonly maxItems?: number | undefined
  /** The number of characters of all texts, with the data of images: 500,000 by default. More are not shown. */
  readonly maxChars?: number | undefined
}

/** Fills in the defaults. */
export const resolve = (bounds: Bounds): Options.Resolved<Bounds> =>
  Options.resolve<Bounds>(bounds, { maxDepth: 16, maxNodes: 1_000, maxItems: 20_000, maxChars: 500_000 }, {})

type Path = ReadonlyArray<string | number>

const pathOf = (path: Path): string =>
  path.reduce<string>((text, key) => typeof key === "number" ? `${text}[${key}]` : `${text}.${key}`, "tree")

/** Every component with its path. The tree is a valid one. */
function* nodesOf(node: Node, path: Path = []): Generator<readonly [Node, Path]> {
  yield [node, path]
  if (!("children" in node)) return
  for (const [at, child] of node.children.entries()) yield* nodesOf(child, [...path, "children", at])
}

/** The levels of values in a member of a component: the arguments of a button may be nested. */
const maxLevels = 10

/** Counts a value that nobody has checked, without recursion, and returns the bound that it exceeds first. */
const excessOf = (tree: unknown, bounds: Options.Resolved<Bounds>): string | undefined => {
  const beyond = (bound: keyof Bounds) =>
    `The tree is larger than ${bound} (${bounds[bound]}). Show less, or in several calls`
  let [nodes, items, chars] = [0, 0, 0]
  // A component has level 0, its members level 1, and the values in these the next ones.
  const stack = [{ value: tree, depth: 1, level: 0 }]
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const { depth, level, value } = next
    if (level === 0) nodes++
    else if (level > 1) items++
    if (typeof value === "string") chars += value.length
    if (level > maxLevels + 1) return `A member of a component is nested deeper than ${maxLevels} levels`
    if (depth > bounds.maxDepth) return beyond("maxDepth")
    if (nodes > bounds.maxNodes) return beyond("maxNodes")
    if (items > bounds.maxItems) return beyond("maxItems")
    if (typeof value === "object" && value !== null) {
      for (const [key, member] of Object.entries(value)) {
        if (!Array.isArray(value)) chars += key.length
        if (level === 0 && key === "children" && Array.isArray(member)) {
          for (const child of member) stack.push({ value: child, depth: depth + 1, level: 0 })
        } else stack.push({ value: member, depth, level: level + 1 })
      }
    }
    if (chars > bounds.maxChars) return beyond("maxChars")
  }
  return undefined
}

const decode = /* @__PURE__ */ Schema.decodeUnknownResult(Node, { errors: "all" })

const refuse = (reason: UiError["reason"]): Result.Result<never, UiError> => Result.fail(new UiError(reason))

/** The number of characters of the faults of a tree. */
const maxProblemChars = 2_000

/** What is wrong with the names in a tree. */
const problemOf = (tree: Node, allowed: ReadonlySet<string> | undefined): UiError["reason"] | undefined => {
  const names = new Set<string>()
  for (const [node, path] of nodesOf(tree)) {
    if (node.type === "input") {
      if (names.has(node.name)) {
        return new InvalidTree({ message: `${pathOf(path)}: another input has the name ${quote(node.name)}` })
      }
      names.add(node.name)
      if (node.kind === "select" && (node.options ?? []).length === 0) {
        return new InvalidTree({ message: `${pathOf(path)}: a select needs options` })
      }
    }
    if (node.type === "button" && node.tool !== undefined && allowed?.has(node.tool) === false) {
      const known = [...allowed].map((name) => quote(name)).join(", ")
      const instead = known === "" ? "Use a message instead" : `Use one of ${known}, or a message`
      return new ToolNotAllowed({
        message: `${pathOf([...path, "tool"])}: buttons may not call ${quote(node.tool)}. ${instead}`
      })
    }
  }
  for (const [node, path] of nodesOf(tree)) {
    const unknown = node.type === "button" ? node.inputs?.find((name) => !names.has(name)) : undefined
    if (unknown !== undefined) {
      return new InvalidTree({ message: `${pathOf([...path, "inputs"])}: there is no input ${quote(unknown)}` })
    }
  }
  return undefined
}

/** Checks a tree. With `allowed`, its buttons may call these tools only. */
export const check = (
  tree: unknown,
  bounds: Bounds = {},
  allowed?: ReadonlySet<string>
): Effect.Effect<Node, UiError> =>
  Effect.suspend(() => {
    if (!isObject(tree)) return Effect.fail(new UiError(new InvalidTree({ message: "The tree is not an object" })))
    const excess = excessOf(tree, resolve(bounds))
    if (excess !== undefined) return Effect.fail(new UiError(new TreeTooLarge({ message: excess })))
    const read = Result.flatMap(
      Result.mapError(decode(tree), ({ message }) =>
        new UiError(new InvalidTree({ message: `The tree is invalid: ${clip(message, maxProblemChars)}` }))),
      (node) => {
        const problem = problemOf(node, allowed)
        return problem === undefined ? Result.succeed(node) : refuse(problem)
      }
    )
    return Effect.fromResult(read)
  })
