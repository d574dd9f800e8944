/** The API reference: a page for each public module, from the doc comments, by TypeDoc. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { type PublicModule, publicModules } from "../../scripts/publicModules.ts"
import { site, staging, typedoc } from "./places.ts"
import { root } from "./sidebar.ts"
import { repository } from "./stage.ts"

/** A package that programs import, with its public modules. */
export interface ApiPackage {
  readonly name: string
  readonly description: string
  readonly modules: ReadonlyArray<PublicModule>
}

/** The packages in the order of the table in the repository's `README.md`. */
export const apiPackages = (): ReadonlyArray<ApiPackage> =>
  Array.from(
    readFileSync(join(root, "README.md"), "utf8").matchAll(/^\| `@skein\/([\w-]+)` +\| (.+?) +\|$/gm),
    ([, name = "", description = ""]) => ({
      name,
      description,
      modules: publicModules(join(root, "packages", name))
    })
  )

/** The comment at the head of a module, as Markdown. Its example is code, with or without a fence. */
const commentOf = (name: string, { path }: PublicModule): string => {
  const source = readFileSync(join(root, "packages", name, "src", `${path}.ts`), "utf8")
  const [, comment = ""] = /^\/\*\*([^]*?)\*\//.exec(source) ?? []
  const [text = "", ...examples] = comment.replaceAll(/^ ?\* ?/gm, "").trim().split(/^@example\n/m)
  const fenced = examples.map((code) => code.includes("```") ? code : `\`\`\`ts\n${code.trim()}\n\`\`\`\n`)
  return [text, ...fenced].join("\n").replaceAll(/\{@link (\w+)\}/g, "`$1`")
}

/** The first sentence of the comment of a module, for a table. */
const summaryOf = (name: string, module: PublicModule): string => {
  const [paragraph = ""] = commentOf(name, module).split(/\n\n/)
  return paragraph.replaceAll("\n", " ").replace(/(?<=\w\.) [^]*/, "").replaceAll("|", "\\|")
}

const rowsOf = ({ modules, name }: ApiPackage): string =>
  modules.map((module) => `| [${module.name}](${name}/${module.name}.md) | ${summaryOf(name, module)} |`).join("\n")

const indexOf = (packages: ReadonlyArray<ApiPackage>): string =>
  "# API\n\nThe public modules of each package. Import a module (`@skein/server/Tool`), or all modules of a package by " +
  "their names (`import { Tool } from \"@skein/server\"`).\n" +
  packages.map((each) =>
    `\n## @skein/${each.name}\n\nUse it to ${each.description}.\n\n| Module | Contents |\n| --- | --- |\n${
      rowsOf(each)
    }\n`
  ).join("")

/** Writes the pages of the API beside the others. Takes about twenty seconds. */
export const writeApi = async (): Promise<void> => {
  const { Application } = await import("typedoc")
  const { printSources } = await import("./signatures.ts")
  const packages = apiPackages()
  const app = await Application.bootstrapWithPlugins({
    plugin: [fileURLToPath(import.meta.resolve("typedoc-plugin-markdown"))],
    entryPoints: packages.flatMap(({ modules, name }) =>
      modules.map(({ path }) => join(root, "packages", name, "src", `${path}.ts`))
    ),
    tsconfig: join(site, "tsconfig.api.json"),
    basePath: join(root, "packages"),
    // TypeDoc empties its folder first. Without `out` that would be the folder `docs` of the working directory.
    out: typedoc,
    outputs: [{ name: "markdown", path: typedoc }],
    // `npm run check` checks the types, with another version of TypeScript.
    skipErrorChecking: true,
    disableGit: true,
    sourceLinkTemplate: `${repository}/blob/main/packages/{path}#L{line}`,
    readme: "none",
    theme: "skein",
    excludeExternals: true,
    excludeInternal: true,
    excludePrivate: true,
    groupOrder: ["Functions", "Variables", "Classes", "Type Aliases", "Interfaces", "*"],
    logLevel: "Warn",
    // Options of the plugin, which the type does not have.
    ...{
      outputFileStrategy: "modules",
      hidePageHeader: true,
      hideBreadcrumbs: true,
      useCodeBlocks: true,
      useHTMLAnchors: true,
      expandParameters: true,
      parametersFormat: "table",
      expandObjects: true
    }
  })
  printSources(app)
  const project = await app.convert()
  if (project === undefined) throw new Error("TypeDoc found errors in the packages")
  await app.generateOutputs(project)
  if (app.logger.hasErrors()) throw new Error("TypeDoc could not write the API reference")
  for (const { modules, name } of packages) {
    mkdirSync(join(staging, "api", name), { recursive: true })
    for (const module of modules) {
      const at = join(name, "src", `${module.path}.md`)
      const page = readFileSync(join(typedoc, at), "utf8")
        // A list of names, such as `A`, `E` and `R`, which the signature has already.
        .replaceAll(/^#+ Type Parameters\n\n\| Type Parameter \|\n(?:\|.*\n)+\n/gm, "")
        // Members of a base class that is an expression, such as `Data.TaggedError("NotFound")`, and those of dependencies.
        .replaceAll(/^#+ (?:Inherited from|Overrides)\n\n`.*\(.*\n+/gm, "")
        .replaceAll(/^Defined in: \[\.\.\/node\\_modules.*\n+/gm, "")
        // The pages of TypeDoc have the paths of the sources, and those of the site the import paths.
        .replaceAll(/\]\(((?:[\w-]+|\.\.)(?:\/[\w-]+|\/\.\.)*\.md)/g, (_, target: string) => {
          const path = join(dirname(at), target).replaceAll("\\", "/")
          return `](../${path.slice(0, path.indexOf("/"))}/${basename(path)}`
        })
        .replace(/^# .*$/m, () => `# @skein/${name}/${module.name}\n\n${commentOf(name, module)}`)
      writeFileSync(join(staging, "api", name, `${module.name}.md`), page)
    }
  }
  writeFileSync(join(staging, "api/index.md"), indexOf(packages))
}
