/**
 * The groups of the sidebar. Each page of `docs` must be in one group, which `docs/test/site.test.ts` checks: add a page
 * here when you add it to `docs`.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** The folder `docs`. */
export const docs = join(import.meta.dirname, "..")

/** The folder of the repository. */
export const root = join(docs, "..")

/** A page: its path from `docs`. Its title in the sidebar is its first heading. */
export type Page = string

/** Pages under a heading. The pages of a group in a group are folded in the sidebar. */
export interface Group {
  readonly title: string
  readonly pages: ReadonlyArray<Page | Group>
  /** `llms.txt` lists the pages as optional, and `llms-full.txt` leaves them out. */
  readonly isOptional?: true
}

/** The pages of a folder of `docs` in the order of their names, without its `README.md`. */
export const pagesIn = (folder: string): ReadonlyArray<Page> =>
  readdirSync(join(docs, folder)).filter((name) => name.endsWith(".md") && name !== "README.md").sort()
    .map((name) => join(folder, name))

export const groups: ReadonlyArray<Group> = [
  {
    title: "Start",
    pages: ["README.md", "quickstart-stdio.md", "quickstart-http.md", "getting-started.md", "effect.md"]
  },
  {
    title: "Guides",
    pages: [
      {
        title: "Servers",
        pages: [
          "authoring.md",
          "versions-and-changes.md",
          "middleware.md",
          "promises.md",
          "asking.md",
          "http.md",
          "state.md",
          "skills.md",
          "composing.md",
          "code-mode.md",
          "remote-servers.md",
          "openapi.md",
          "apps.md",
          "effect-applications.md",
          "developing.md"
        ]
      },
      {
        title: "Clients",
        pages: [
          "embedding.md",
          "calls.md",
          "configured-servers.md",
          "async-client.md",
          "model-schemas.md",
          "generated-clients.md",
          "answering.md",
          "staying.md",
          "signing-in.md"
        ]
      },
      { title: "Tasks", pages: ["tasks.md", "tasks-guarantees.md", "tasks-machines.md"] },
      { title: "Authorization", pages: ["protecting.md", "proxy.md", "identity-providers.md", ...pagesIn("providers")] }
    ]
  },
  {
    title: "Operate",
    pages: [
      "behind-a-proxy.md",
      "several-instances.md",
      "health.md",
      "configuration.md",
      "recipes/logs.md",
      "recipes/prometheus.md",
      "console.md",
      "tasks-operating.md",
      "recipes/docker.md",
      "recipes/hosting.md",
      "recipes/nginx.md",
      "recipes/kubernetes.md"
    ]
  },
  {
    title: "Recipes",
    pages: [
      "recipes/authorization.md",
      "recipes/headers.md",
      "recipes/publish.md",
      "recipes/serverless.md",
      "recipes/existing-application.md",
      "recipes/openapi.md",
      "recipes/testing.md"
    ]
  },
  {
    title: "Coming from",
    pages: [
      "coming-from/sdk-v1.md",
      "coming-from/sdk-v2.md",
      "coming-from/fastmcp-ts.md",
      "coming-from/fastmcp-npm.md",
      "coming-from/fastmcp-python.md",
      "coming-from/effect-ai.md",
      { title: "Five servers, three times", pages: ["comparison.md", ...pagesIn("comparison")] }
    ]
  },
  {
    title: "Reference",
    pages: [
      "cli.md",
      "troubleshooting.md",
      "glossary.md",
      {
        title: "Limits",
        pages: ["limits.md", "limits-client.md", "limits-auth.md", "limits-tasks.md", "limits-proxy.md"]
      },
      { title: "Messages", pages: pagesIn("messages"), isOptional: true }
    ]
  },
  {
    title: "Project",
    pages: [
      "architecture.md",
      { title: "Decisions", pages: ["decisions/README.md", ...pagesIn("decisions")] },
      "security.md",
      "security-audit.md",
      "tokens-and-threats.md",
      "conformance.md",
      "benchmarks.md",
      {
        title: "Repository",
        pages: ["../CHANGELOG.md", ...pagesIn("changes"), "renamed.md", "../CONTRIBUTING.md", "../SECURITY.md"],
        isOptional: true
      }
    ]
  }
]

/** A page with the attribute of its group. */
export interface Listed {
  readonly page: Page
  readonly isOptional: boolean
}

/** The pages of a group and of the groups in it. */
export const pagesOf = ({ isOptional, pages }: Group): ReadonlyArray<Listed> =>
  pages.flatMap((entry) =>
    typeof entry === "string"
      ? [{ page: entry, isOptional: isOptional === true }]
      : pagesOf(isOptional === true ? { ...entry, isOptional } : entry)
  )

/** All pages of the sidebar. */
export const pages: ReadonlyArray<Page> = groups.flatMap((group) => pagesOf(group).map(({ page }) => page))

/** The text of a page. */
export const read = (page: Page): string => readFileSync(join(docs, page), "utf8")

/** The first heading of a page, without the marks of code and without escapes. */
export const titleOf = (text: string): string =>
  (/^# (.+)$/m.exec(text)?.[1] ?? "").replaceAll("`", "").replaceAll(/\\(?=\W)/g, "")

/** The title of a page under the heading of its group: without the words of the heading. */
export const labelOf = (text: string): string => {
  const title = titleOf(text).replace(/^(?:Recipe: |Coming from (?:the )?)/, "")
  return title.charAt(0).toUpperCase() + title.slice(1)
}

/** The path of a page in the site. A `README.md` of GitHub is an index, and files above `docs` have names of their own. */
export const sitePath = (page: Page): string =>
  ({
    "README.md": "guides.md",
    "../CHANGELOG.md": "changelog.md",
    "../CONTRIBUTING.md": "contributing.md",
    "../SECURITY.md": "reporting.md"
  })[page] ?? page.replace(/(^|\/)README\.md$/, "$1index.md")
