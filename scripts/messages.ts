/**
 * Lists every message that the packages can show to a user, an operator or a model, so that messages can be reviewed in one place.
 *
 * `npm run messages` writes a page for each package into `docs/messages`; `scripts/messages.test.ts` fails when a page and the code differ.
 *
 * A message is a string or template literal of two or more words: error and log messages, tool errors, status messages, the texts of the
 * command line. SQL, code that is generated as text, and the names of fields are left out. An expression inside of a
 * template is shown as its source: `${name}`.
 */
import { parseSync, types } from "@babel/core"
import { globSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "..")

/** Two words in a row, as in prose: identifiers, paths, media types and header values have none. */
const isProse = (text: string): boolean =>
  /[A-Za-z`}][a-z`}'-]*[,:;]? [a-z`$"(][\w`$"({'-]*/.test(text) && !/^[a-z-]+\/[a-z-]+;/.test(text)

const isSql = (text: string): boolean =>
  /^\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|BEGIN|PRAGMA|WITH|SET|LISTEN|NOTIFY|AND|OR|ON|FROM|WHERE|LIMIT|ORDER|RETURNING|FOR|VALUES)\b/
    .test(text) || /\b(IS NULL|NOT NULL|PRIMARY KEY|SELECT|DEFAULT)\b/.test(text)

/** The messages of one module, in the order of the source. */
export const messagesOf = (source: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  const file = parseSync(source, {
    babelrc: false,
    configFile: false,
    sourceType: "module",
    parserOpts: { plugins: ["typescript"] }
  })
  if (file === null) throw new Error("the module has no syntax tree")
  const add = (text: string): void => {
    const line = text.replaceAll(/\s*\n\s*/g, " ").trim()
    if (isProse(line) && !isSql(line)) found.push(line)
  }
  // `traverse` would also find the scope of each name, which takes twenty times as long.
  types.traverseFast(file, (node) => {
    if (types.isTSType(node) || types.isImportDeclaration(node) || types.isTaggedTemplateExpression(node)) {
      return types.traverseFast.skip
    }
    if (types.isStringLiteral(node)) add(node.value)
    else if (types.isTemplateLiteral(node)) {
      const parts = node.quasis.map(({ value }, at) => {
        const inner = node.expressions[at]
        const shown = inner === undefined ? "" : `\${${source.slice(inner.start!, inner.end!).replaceAll(/\s+/g, " ")}}`
        return (value.cooked ?? value.raw) + shown
      })
      add(parts.join(""))
    }
    return undefined
  })
  return [...new Set(found)]
}

const cell = (text: string): string => text.replaceAll(/[|`<*_]/g, "\\$&")

/** The packages that have a page. */
export const packages: ReadonlyArray<string> = globSync("packages/*/package.json", { cwd: root })
  .map((path) => path.split("/")[1]!)
  .toSorted()

/** The path of a package's page. */
export const pageOf = (name: string): string => join(root, "docs/messages", `${name}.md`)

/** The modules that are written by a script. Their messages are in the sources of a page, which its readers see. */
const generated = ["internal/pageHtml.ts", "internal/pageScripts.ts", "internal/sandboxScript.ts"]

/** A package's page, from its sources. */
export const render = (name: string): string => {
  const sources = globSync(`packages/${name}/{src,page}/**/*.ts`, { cwd: root }).toSorted()
  const rows = sources.filter((path) => !generated.some((name) => path.endsWith(name))).flatMap((path) =>
    messagesOf(readFileSync(join(root, path), "utf8")).map((message) =>
      `| ${cell(message)} | ${path.slice(`packages/${name}/`.length).replace(/^src\//, "")} |`
    )
  )
  const { name: published } = JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8")) as {
    readonly name: string
  }
  return `# Messages of ${published}

Every message that a user, an operator or a model can see, in the order of the source. \`\${…}\` is a value that is filled in.
\`npm run messages\` writes this page, and a test compares it with the code.

| Message | Module |
| --- | --- |
${rows.join("\n")}
`
}

if (process.argv[1] === import.meta.filename) {
  for (const name of packages) writeFileSync(pageOf(name), render(name))
}
