/** `llms.txt` and `llms-full.txt`: the site for language models, in the format of https://llmstxt.org. */
import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { apiPackages } from "./api.ts"
import { built, staging } from "./places.ts"
import { groups, type Listed, pagesOf, root, sitePath, titleOf } from "./sidebar.ts"

const withoutLinks = (text: string): string => text.replaceAll(/\[([^\]]+)\]\([^)]+\)/g, "$1")

/** The first sentences of a page, up to 200 characters. */
const summaryOf = (text: string): string => {
  const paragraph = text.split(/\n\n+/).find((part) => /^[A-Z`[]/.test(part)) ?? ""
  const [first = "", ...others] = withoutLinks(paragraph.replaceAll("\n", " ")).split(/(?<=\.) (?=[A-Z`])/)
  let summary = first
  for (const sentence of others) {
    if (summary.length + sentence.length > 200) break
    summary += ` ${sentence}`
  }
  return summary.replace(/:$/, ".")
}

/** The paragraph and the commands of the repository's `README.md` that say what Skein is and how to install it. */
const head = (): string => {
  const readme = readFileSync(join(root, "README.md"), "utf8")
  const [, about] = /^(Skein is [^]*?)\n\n/m.exec(readme) ?? []
  const [, commands] = /^```sh\n((?:npm install .*\n)+)```$/m.exec(readme) ?? []
  if (about === undefined || commands === undefined) throw new Error("README.md has no description or no commands")
  return `# Skein\n\n> ${withoutLinks(about.replaceAll("\n", " ")).replaceAll("**", "")}\n\n` +
    `Install the packages for your role. Programs import single modules: \`@skein/server/Tool\`, \`effect/Effect\`.\n\n` +
    `\`\`\`sh\n${commands}\`\`\`\n`
}

/**
 * Writes both files into the built site, and the Markdown of each page beside its HTML. `at` is the address of the site,
 * or its path.
 */
export const writeLlms = (at: URL | string): void => {
  const address = (path: string): string => typeof at === "string" ? at + path : new URL(path, at).href
  const textOf = (path: string): string => readFileSync(join(staging, path), "utf8")
  for (const path of readdirSync(staging, { recursive: true, encoding: "utf8" })) {
    if (path.endsWith(".md") && path !== "index.md") cpSync(join(staging, path), join(built, path))
  }
  const row = (path: string): string => `- [${titleOf(textOf(path))}](${address(path)}): ${summaryOf(textOf(path))}`
  const paths = (pages: ReadonlyArray<Listed>, isOptional: boolean): ReadonlyArray<string> =>
    pages.filter((each) => each.isOptional === isOptional).map(({ page }) => sitePath(page))
  const sections = groups.map((group) => ({ title: group.title, paths: paths(pagesOf(group), false) }))
  const api = apiPackages().flatMap(({ modules, name }) => modules.map((module) => `api/${name}/${module.name}.md`))
  const optional = [
    ...paths(groups.flatMap(pagesOf), true).map(row),
    ...api.map((path) => `- [${titleOf(textOf(path))}](${address(path)})`)
  ]
  const lists = sections.map(({ paths, title }) => `\n## ${title}\n\n${paths.map(row).join("\n")}\n`)
  writeFileSync(join(built, "llms.txt"), `${head()}${lists.join("")}\n## Optional\n\n${optional.join("\n")}\n`)
  const texts = sections.flatMap(({ paths }) => paths)
    .map((path) => `\n<!-- ${address(path)} -->\n\n${textOf(path).trim()}\n`)
  writeFileSync(join(built, "llms-full.txt"), head() + texts.join(""))
}
