/**
 * The sentence that the packages are not on npm yet. Once they are, set `isOnNpm` and run `npm run blocks`: it removes the
 * sentence from all pages.
 */

/** Whether the packages can be installed from npm. */
export const isOnNpm: boolean = false

/** The pages with commands that install packages, and the link from each to the page about clones. */
export const installing: ReadonlyArray<readonly [page: string, link: string]> = [
  ["README.md", "docs/clone.md"],
  ["docs/by-hand.md", "clone.md"],
  ["docs/quickstart-client.md", "clone.md"],
  ["docs/quickstart-http.md", "clone.md"],
  ["docs/quickstart-stdio.md", "clone.md"],
  ["docs/quickstart-tasks.md", "clone.md"],
  ["docs/site/home.md", "/clone"]
]

/** The text of a page with the sentence above its first command that installs, or without it. */
export const withNotice = (text: string, link: string, onNpm = isOnNpm): string => {
  const without = text.replaceAll(/^> \*\*Not on npm yet\.\*\*.*\n\n/gm, "")
  if (onNpm) return without
  const command = /^```sh\n(?:(?!```).*\n)*?(?:npm create skein|npm install|npx )/m
  return without.replace(
    command,
    (block) =>
      `> **Not on npm yet.** Commands that install Skein fail until then: [try it in a clone](${link}).\n\n${block}`
  )
}
