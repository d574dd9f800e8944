/**
 * Lists the messages that the packages show to a user, an operator or a model, so that a person can review them in one
 * place: error and log messages, tool errors, status messages, texts of the command line.
 *
 * `npm run messages` writes a page for each package into `docs/messages`; `scripts/messages.test.ts` fails when a page
 * and the code differ.
 *
 * A message is a string, a template, or a concatenation of them, with two or more words in a row. It is one row: an
 * expression inside is shown as its source, `${name}`, and texts in that expression have no row of their own. Names and
 * texts for programs are left out: keys, compared values, headers, SQL, HTML and CSS, generated code, and the descriptions
 * and examples of `--help`.
 */
import { parseSync, types } from "@babel/core"
import { globSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

type Node = types.Node

const root = join(import.meta.dirname, "..")

/** Two words in a row, without the values between them. */
const phrase = /[A-Za-z`)][a-z`)'-]*[,:;]? [a-zA-Z`("][\w`("'-]*/

/** Two words around a value: "expected {0}, got {1}". */
const around = /(^|[ (])[A-Za-z][a-z]+,? \{\d+\}[ ,:;(]+[a-z]{2,}\b/

/** Whether a text has words as in prose. Identifiers, paths and names such as `Bad Request` have none. */
const isProse = (text: string): boolean =>
  /(^|[\s("'`])[a-z]{2,}\b/.test(text) && (phrase.test(text.replaceAll(/\{\d+\}/g, "0")) || around.test(text))

/** Whether a text is a value of a header, or an event of a stream. */
const isHeader = (text: string): boolean =>
  /^[\w-]+\/[\w-]+[;,]|-src |^(Basic|Bearer|DPoP) \{|^(data|event|id|retry): |^no-store|^openid /i.test(text)

const isSql = (text: string): boolean =>
  /^[\s(,]*(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|BEGIN|PRAGMA|WITH|SET|LISTEN|NOTIFY|AND|OR|ON|FROM|WHERE|LIMIT|ORDER|RETURNING|FOR|VALUES|CASE|CAST|IN|TEXT)\b/
    .test(text) ||
  /\b(IS NULL|NOT NULL|PRIMARY KEY|SELECT|DEFAULT|CASE|BIGINT|VALUES|AND gate|OR skein_\w+)\b|\bIN \(|\bAS \(|= \? AND\b|\b(AND|OR) [\w.]+ [=<>]/
    .test(text) ||
  // The columns of a statement.
  (/^\w+(, \w+)+$/.test(text) && /[a-z]_[a-z]/.test(text))

const isCode = (text: string): boolean =>
  // A script in Lua, of Redis.
  /\bKEYS\[1\]|\bARGV\b/.test(text) ||
  /^(import|export|const|return|function|await) |[\w.#*:\]] \{ ?[\w-]+:|=> |^--[\w-]+ .*(https?:|\.ts\b|\.yml\b|"node )/
    .test(text)

/** Tags have no words for a reader; the text between them has. */
const withoutTags = (text: string): string =>
  text.replaceAll(/<!--.*?-->/g, " ").replaceAll(
    /<(!doctype|\/?(a|body|br|button|code|dd|details|div|dl|dt|fieldset|footer|form|h\d|head|header|html|iframe|img|input|label|legend|li|link|main|meta|nav|ol|option|output|p|pre|progress|script|section|select|small|span|strong|style|summary|svg|table|tbody|td|template|textarea|th|thead|title|tr|ul)\b)[^<>]*>/gi,
    " "
  )

/** The members whose values are names, or examples of a command line. */
const namingMembers = new Set([
  "accept",
  "authorization",
  "class",
  "className",
  "examples",
  "id",
  "key",
  "mimeType",
  "scope",
  "style",
  "usage",
  "viewBox"
])

/** The methods whose first argument is a name, or a text to look for. */
const namingMethods =
  /\.(get|set|has|delete|remove|withLock|includes|startsWith|endsWith|indexOf|split|join|on|encode|Literals?|append|setAttribute|querySelector|createElement|exec|prepare|unsafe)$/

/** The functions whose arguments are texts of `--help`. */
const helpFunctions = /^(describe|toggle)$|\.withDescription$/

/** Whether a part of a node is a name, or a text for a program. */
const isNaming = (node: Node, member: string, source: (node: Node) => string): boolean => {
  if (types.isObjectProperty(node)) {
    return member === "key" || namingMembers.has(source(node.key))
  }
  if (types.isBinaryExpression(node)) return /^[!=]==?$/.test(node.operator)
  if (types.isSwitchCase(node)) return member === "test"
  return types.isMemberExpression(node) && member === "property"
}

/** The messages of one module, in the order of the source. */
export const messagesOf = (text: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  const file = parseSync(text, {
    babelrc: false,
    configFile: false,
    sourceType: "module",
    parserOpts: { plugins: ["typescript"] }
  })
  if (file === null) throw new Error("the module has no syntax tree")
  const source = (node: Node): string => text.slice(node.start!, node.end!)

  /** The parts of a text, in which an expression is its source; `undefined` if the node is not a text. */
  const partsOf = (node: Node): ReadonlyArray<string | Node> | undefined => {
    if (types.isStringLiteral(node)) return [node.value]
    if (types.isTemplateLiteral(node)) {
      return node.quasis.flatMap(({ value }, at) => [value.cooked ?? value.raw, ...node.expressions.slice(at, at + 1)])
    }
    if (!types.isBinaryExpression(node, { operator: "+" })) return undefined
    const [left, right] = [partsOf(node.left), partsOf(node.right)]
    return left === undefined && right === undefined
      ? undefined
      : [...left ?? [node.left], ...right ?? [node.right]]
  }
  /** Adds a text, and returns whether it is a message. */
  const add = (parts: ReadonlyArray<string | Node>): boolean => {
    const nodes = parts.filter((part) => typeof part !== "string")
    let at = 0
    // A value is its number at first, since a tag may contain values, too.
    const words = withoutTags(parts.map((part) => typeof part === "string" ? part : `{${at++}}`).join(""))
      .replaceAll(/\s+/g, " ").trim()
    if (!isProse(words) || isHeader(words) || isSql(words) || isCode(words)) return false
    found.push(words.replaceAll(/\{(\d+)\}/g, (text, index) => {
      const node = nodes[Number(index)]
      return node === undefined ? text : `\${${source(node).replaceAll(/\s+/g, " ")}}`
    }))
    return true
  }
  const visit = (node: Node): void => {
    if (types.isTSType(node) || types.isImportDeclaration(node) || types.isTaggedTemplateExpression(node)) return
    if (types.isCallExpression(node) && helpFunctions.test(source(node.callee))) return
    const parts = partsOf(node)
    if (parts !== undefined && add(parts)) return
    const isNamingCall = types.isCallExpression(node) && namingMethods.test(source(node.callee))
    for (const member of types.VISITOR_KEYS[node.type] ?? []) {
      if (isNaming(node, member, source)) continue
      const value =
        (node as unknown as Readonly<Record<string, Node | ReadonlyArray<Node | null> | null | undefined>>)[member]
      const children = [value].flat().filter((child) => child != null)
      for (const child of isNamingCall && member === "arguments" ? children.slice(1) : children) visit(child)
    }
  }
  visit(file.program)
  return [...new Set(found)]
}

/** A text of Markdown, which shows all characters of a message. */
const markdown = (text: string): string => text.replaceAll(/[`<*_]/g, "\\$&")

/** The packages that have a page. */
export const packages: ReadonlyArray<string> = globSync("packages/*/package.json", { cwd: root })
  .map((path) => path.split("/")[1]!)
  .toSorted()

/** The path of a package's page. */
export const pageOf = (name: string): string => join(root, "docs/messages", `${name}.md`)

/** The modules that are written by a script. Their messages are in the sources of a page, which its readers see. */
const generated = ["internal/pageHtml.ts", "shared/pageScripts.ts", "internal/sandbox/sandboxScript.ts"]

/** A package's page, from its sources. */
export const render = (name: string): string => {
  const sources = globSync(`packages/${name}/{src,page}/**/*.ts`, { cwd: root }).toSorted()
  const listed = new Set<string>()
  const sections = sources.filter((path) => !generated.some((name) => path.endsWith(name))).flatMap((path) => {
    const messages = messagesOf(readFileSync(join(root, path), "utf8")).filter((each) => !listed.has(each))
    for (const each of messages) listed.add(each)
    const module = path.slice(`packages/${name}/`.length).replace(/^src\//, "")
    return messages.length === 0
      ? []
      : [`## ${module}\n\n${messages.map((each) => `- ${markdown(each)}`).join("\n")}\n`]
  })
  const { name: published } = JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8")) as {
    readonly name: string
  }
  return `# Messages of ${published}

Sorted by module. \`\${…}\` is a value. \`npm run messages\` writes this page.

${sections.join("\n")}`
}

if (process.argv[1] === import.meta.filename) {
  for (const name of packages) writeFileSync(pageOf(name), render(name))
}
