/**
 * Checks of TypeScript sources that the linter cannot make: the English of comments, the defaults of options, cuts of
 * texts, the base of errors, and the oldest Node. CONTRIBUTING describes the rules.
 */
import { join } from "node:path"
import { type ESTree, parseSync, Visitor } from "rolldown/utils"
import { checkFiles } from "./tree.ts"

/** Words and forms that a comment does not use, with the proposal that the message makes. */
const words: ReadonlyArray<readonly [form: RegExp, instead: string]> = [
  [/\b(nobody|everybody|somebody|whoever)\b/i, "name the person, the caller, the client or the process"],
  [/\banew\b/i, "again"],
  [/\bfor ever\b/i, "without end, or the bound"],
  [/\bin vain\b/i, "without a result"],
  [/(?<!\bthere )\b(is|are|was|were) no (?!longer\b)/i, "is not a, or has no"],
  [/(?<!\bthere )\b(is|are|was|were) none\b/i, "has no, and the noun"],
  [/\bno more\b(?! than\b)/i, "no longer, or no further"],
  [/\bby (itself|themselves)\b/i, "automatically, or alone"],
  [/\b(of ours|so be it)\b/i, "a plain sentence"],
  [/\b(makes?|made|comes?|came) again\b/i, "retries, or reconnects"]
]

/** A sentence that begins with a relative clause: "What waits is …". A question ends with its mark. */
const relativeClause = /(?:^|[.:!] )(?:What|Who|Whoever|Whatever)\b(?![^.:!?]*\?)/

/** Returns a comment as one line, without its asterisks and without code and quotations. */
const proseOf = (comment: string): string =>
  comment.replaceAll(/^\s*\*+ ?/gm, "").replaceAll(/`[^`]*`/g, "``").replaceAll(/"[^"\n]*"/g, "\"\"")
    .replaceAll(/\s+/g, " ").trim()

interface Found {
  readonly start: number
  readonly message: string
}

type Parsed = ReturnType<typeof parseSync>

/** Returns the comments, in which the lines of one `//` comment are together. */
const commentsOf = (
  text: string,
  { comments }: Parsed
): ReadonlyArray<{ readonly start: number; readonly value: string }> => {
  const joined: Array<{ start: number; end: number; value: string; isLine: boolean }> = []
  for (const { end, start, type, value } of comments) {
    const last = joined.at(-1)
    const isLine = type === "Line"
    if (isLine && last?.isLine === true && /^\n\s*$/.test(text.slice(last.end, start))) {
      last.value += `\n${value}`
      last.end = end
    } else joined.push({ start, end, value, isLine })
  }
  return joined
}

/** Returns the forms of a module's comments that a reader stops at. */
const englishOf = (text: string, parsed: Parsed): ReadonlyArray<Found> =>
  commentsOf(text, parsed).flatMap(({ start, value }) => {
    const prose = proseOf(value)
    const clause = relativeClause.exec(prose)?.[0]
    return [
      ...clause === undefined
        ? []
        : [{ start, message: `a sentence begins with "${clause.replace(/^[.:!] /, "")}": name the thing` }],
      ...words.flatMap(([form, instead]) => {
        const word = form.exec(prose)?.[0].trim()
        return word === undefined ? [] : [{ start, message: `"${word}" in a comment: write ${instead}` }]
      })
    ]
  })

/** Returns the options of a module whose default is not declared with `Options.resolve`. */
const defaultsOf = (text: string, { program }: Parsed): ReadonlyArray<Found> => {
  const found: Array<Found> = []
  new Visitor({
    CallExpression: ({ arguments: [first], callee, start }) => {
      const isDuration = /^Duration\.(to[A-Z]\w*|fromInputUnsafe)$/.test(text.slice(callee.start, callee.end))
      if (isDuration && first?.type === "LogicalExpression" && first.operator === "??") {
        found.push({ start, message: "an option has its default from Options.resolve of @skein/runtime" })
      }
    }
  }).visit(program)
  return found
}

/**
 * Returns the errors of a module that have a message and do not escape it. An optional message is a value for the other
 * side, and an error without it has none of its own.
 */
const errorsOf = (text: string, { program }: Parsed): ReadonlyArray<Found> => {
  const found: Array<Found> = []
  const source = ({ end, start }: { readonly start: number; readonly end: number }): string => text.slice(start, end)
  /** The text of the fields: a literal type, or an interface of the same module. */
  const fieldsOf = (type: ESTree.TSType): string =>
    source(
      program.body.map((statement) => statement.type === "ExportNamedDeclaration" ? statement.declaration : statement)
        .find((declared) => declared?.type === "TSInterfaceDeclaration" && declared.id.name === source(type)) ?? type
    )
  const check = (node: ESTree.Class): void => {
    if (node.superClass?.type !== "CallExpression" || source(node.superClass.callee) !== "Data.TaggedError") return
    if (!(node.superTypeArguments?.params ?? []).some((type) => /\bmessage:/.test(fieldsOf(type)))) return
    found.push({
      start: node.start,
      message: "an error with a message extends PrintableError.tagged, which escapes it"
    })
  }
  new Visitor({ ClassDeclaration: check, ClassExpression: check }).visit(program)
  return found
}

/** A bound by its name. A position in a text has another one: `at`, `end`, `colon`. */
const boundName = /^#?(max|most|longest|limit|quoted|room|available)/

const isBound = (node: ESTree.Argument | ESTree.PrivateIdentifier | undefined): boolean => {
  switch (node?.type) {
    case "Literal":
      return typeof node.value === "number" && node.value > 1
    case "Identifier":
    case "PrivateIdentifier":
      return boundName.test(node.name)
    case "MemberExpression":
      return !node.computed && isBound(node.property as ESTree.Argument)
    case "UnaryExpression":
      return node.operator === "-" && isBound(node.argument)
    case "BinaryExpression":
      return isBound(node.left) || isBound(node.right)
    default:
      return false
  }
}

/** Names of lists: plurals, and participles such as `found`. `address` is not a plural. */
const listName =
  /(^|[^s])s$|^(all|found|left|leftOut|ignored|failed|known|open|rest|present|named|sorted|some|chosen|list|written|[a-z]*Path|path)$/

/** The results of functions that return lists. */
const listFunction =
  /^(from|of|keys|values|entries|filter|map|flatMap|split|sort|toSorted|reverse|toReversed|concat|fromEntries)$/

/** ASCII of a fixed form, such as a digest or a time. */
const asciiName = /(id|hash|hex|digest|code|sealed)$/i
const asciiFunction = /^(toISOString|replace|sha256Hex)$/

/** Methods of lists and not of texts, by which the result of a cut is a list. */
const continuesAsList = /^[\s)]*\.(map|flatMap|filter|join|forEach|some|every|find|toSorted|reduce)\(/

/** Returns the last name of an expression: `b` of `a.b`, `a.b()` and `yield* b`. */
const lastName = (node: ESTree.Expression | ESTree.Super): { readonly name: string; readonly isCall: boolean } => {
  switch (node.type) {
    case "Identifier":
      return { name: node.name, isCall: false }
    case "MemberExpression":
      return {
        name: node.property.type === "Identifier" || node.property.type === "PrivateIdentifier"
          ? node.property.name
          : "",
        isCall: false
      }
    case "CallExpression":
      return { name: lastName(node.callee).name, isCall: true }
    case "YieldExpression":
      return node.argument === null ? { name: "", isCall: false } : lastName(node.argument)
    case "ParenthesizedExpression":
    case "TSNonNullExpression":
    case "TSAsExpression":
      return lastName(node.expression)
    default:
      return { name: "", isCall: false }
  }
}

/**
 * Returns the cuts of texts that may leave half of a surrogate pair. `Text.cut` and `Text.clip` of `@skein/protocol` cut
 * between characters. A cut at a position that was found in the text is not one of these, and neither is one of a list.
 */
const cutsOf = (text: string, { program }: Parsed): ReadonlyArray<Found> => {
  const found: Array<Found> = []
  new Visitor({
    CallExpression: ({ arguments: [from, to], callee, end, start }) => {
      if (callee.type !== "MemberExpression" || callee.property.type !== "Identifier") return
      const { name } = callee.property
      const message = "a text is cut by Text.cut or Text.clip, which never cut a character in half"
      if (name === "substring" || name === "substr") return void found.push({ start, message })
      if (name !== "slice" || from?.type !== "Literal" || from.value !== 0 || !isBound(to)) return
      const of = callee.object
      const receiver = lastName(of)
      const isList = of.type === "ArrayExpression" || continuesAsList.test(text.slice(end)) ||
        (receiver.isCall ? listFunction : listName).test(receiver.name)
      if (isList || (receiver.isCall ? asciiFunction : asciiName).test(receiver.name)) return
      found.push({ start, message })
    }
  }).visit(program)
  return found
}

/** Programs that users run, with each version of Node that the packages support. */
const userProgram = /^(docs\/programs|examples|packages\/[^/]+\/(src|templates))\//

/** Returns the uses of a member that Node has since 24.2. */
const mainsOf = (text: string, { program }: Parsed): ReadonlyArray<Found> => {
  const found: Array<Found> = []
  new Visitor({
    MemberExpression: ({ end, start }) => {
      if (text.slice(start, end) !== "import.meta.main") return
      found.push({ start, message: "Node 22 has no import.meta.main: process.argv[1] === import.meta.filename" })
    }
  }).visit(program)
  return found
}

const packageModule = /^packages\/[^/]+\/src\//

/** Modules that a script writes contain the comments of other programs. */
const generated = /\/(pageHtml|pageScripts|sandboxScript)\.ts$/

/** The module that resolves options, and the package that imports no other. */
const resolvesOptions = /^packages\/(runtime\/src\/Options\.ts$|sql\/)/

/** The module that cuts texts, and the packages that import no other. */
const ownsCuts = /^packages\/(protocol\/src\/Text\.ts$|sql\/|testing\/)/

/** The module that escapes messages, and the error whose message is a part of the protocol and must not change. */
const ownsMessages = /^packages\/protocol\/src\/(PrintableError|McpError)\.ts$/

/** Returns the problems of a file, each with its line. */
export const sourceProblems = (path: string, text: string): ReadonlyArray<string> => {
  if (!path.endsWith(".ts") || generated.test(path)) return []
  const isPackage = packageModule.test(path)
  const parsed = parseSync(path, text)
  const found = [
    ...englishOf(text, parsed),
    ...userProgram.test(path) ? mainsOf(text, parsed) : [],
    ...isPackage && !resolvesOptions.test(path) ? defaultsOf(text, parsed) : [],
    ...isPackage && !ownsCuts.test(path) ? cutsOf(text, parsed) : [],
    ...isPackage && !ownsMessages.test(path) ? errorsOf(text, parsed) : []
  ]
  return found.map(({ message, start }) => `${path}:${text.slice(0, start).split("\n").length}: ${message}`)
}

if (import.meta.main) {
  const root = join(import.meta.dirname, "..")
  const found = checkFiles(root, (path, bytes) => sourceProblems(path, bytes.toString("utf8")).join("\n") || undefined)
  for (const text of found) console.error(text)
  process.exitCode = found.length === 0 ? 0 : 1
}
