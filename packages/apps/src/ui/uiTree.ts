/**
 * Checks trees of components: their bounds before anything else, then their schema, then the names in them.
 */
import { isObject } from "@skein/protocol/JsonRpc"
import { clip, quote } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { InvalidTree, ToolNotAllowed, TreeTooLarge, UiError } from "./UiError.ts"
import { Node } from "./uiNode.ts"

/** The most components, one inside another. */
const maxDepth = 16
/** The most components. */
const maxNodes = 1_000
/** The most rows, cells, points of charts, options and arguments. */
const maxItems = 20_000
/** The most characters of all texts, with the data of images. */
const maxChars = 500_000

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

const beyond = (bound: string): string => `The tree has more than ${bound}. Show less, or in several calls`

/** Counts an unchecked value, without recursion, and describes the bound that it exceeds first. */
const excessOf = (tree: unknown): string | undefined => {
  let [nodes, items, chars] = [0, 0, 0]
  // A component has level 0, its members level 1, and the values in these the next ones.
  const stack = [{ value: tree, depth: 1, level: 0 }]
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const { depth, level, value } = next
    if (level === 0) nodes++
    else if (level > 1) items++
    if (typeof value === "string") chars += value.length
    if (level > maxLevels + 1) return `A member of a component is nested deeper than ${maxLevels} levels`
    if (depth > maxDepth) return beyond(`${maxDepth} components, one inside another`)
    if (nodes > maxNodes) return beyond(`${maxNodes} components`)
    if (items > maxItems) return beyond(`${maxItems} rows, cells, points, options and arguments`)
    if (typeof value === "object" && value !== null) {
      for (const [key, member] of Object.entries(value)) {
        if (!Array.isArray(value)) chars += key.length
        if (level === 0 && key === "children" && Array.isArray(member)) {
          for (const child of member) stack.push({ value: child, depth: depth + 1, level: 0 })
        } else stack.push({ value: member, depth, level: level + 1 })
      }
    }
    if (chars > maxChars) return beyond(`${maxChars} characters`)
  }
  return undefined
}

const decode = /* @__PURE__ */ Schema.decodeUnknownResult(Node, { errors: "all" })

/** The number of characters of the faults of a tree. */
const maxProblemChars = 2_000

/** Returns the fault of the names in a tree, if there is one. */
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
  allowed?: ReadonlySet<string>
): Effect.Effect<Node, UiError> =>
  Effect.suspend(() => {
    const invalid = (message: string) => Effect.fail(new UiError(new InvalidTree({ message })))
    if (!isObject(tree)) return invalid("The tree is not an object")
    const excess = excessOf(tree)
    if (excess !== undefined) return Effect.fail(new UiError(new TreeTooLarge({ message: excess })))
    const decoded = decode(tree)
    if (Result.isFailure(decoded)) {
      return invalid(`The tree is invalid: ${clip(decoded.failure.message, maxProblemChars)}`)
    }
    const problem = problemOf(decoded.success, allowed)
    return problem === undefined ? Effect.succeed(decoded.success) : Effect.fail(new UiError(problem))
  })
