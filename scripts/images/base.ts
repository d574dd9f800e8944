/**
 * The image `node:24-slim` that the Dockerfiles start from, for `npm run images`.
 *
 * If it is missing and cannot be pulled, an image with its name is made from this machine: the programs that the
 * Dockerfiles and npm use, with their libraries, this process's Node and npm, and the user `node`. That is enough for the
 * templates and takes seconds, where Debian's base system takes a minute.
 */
import { execFileSync } from "node:child_process"
import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { dirname, join } from "node:path"

export const base = "docker.io/library/node:24-slim"

const programs = ["/bin/sh", "/bin/chown", "/bin/mkdir", "/usr/bin/env"]

/** The libraries that a program loads, by their absolute paths. */
const librariesOf = (program: string): ReadonlyArray<string> =>
  Array.from(
    execFileSync("ldd", [program], { encoding: "utf8" }).matchAll(/(\/\S+) \(0x/g),
    ([, path = ""]) => path
  )

/** All libraries of the C library, because programs that npm installs load others than Node does. */
const cLibraries = (libraries: Iterable<string>): ReadonlyArray<string> =>
  Array.from(libraries).filter((path) => path.endsWith("/libc.so.6")).flatMap((path) =>
    readdirSync(dirname(path))
      .filter((name) => /^lib(dl|m|pthread|resolv|rt|util)\.so\.\d$/.test(name))
      .map((name) => join(dirname(path), name))
  )

/** Writes the files of the image, and its Dockerfile, into a new folder. */
export const writeBase = (folder: string): void => {
  const files = join(folder, "files")
  const npm = process.env["npm_execpath"]
  if (npm === undefined) throw new Error("start this script with npm run images")
  const copy = (from: string, to: string): void => {
    mkdirSync(join(files, dirname(to)), { recursive: true })
    copyFileSync(realpathSync(from), join(files, to))
  }
  for (const program of programs) copy(program, program)
  copy(process.execPath, "/usr/local/bin/node")
  const libraries = new Set([...programs, process.execPath].flatMap(librariesOf))
  for (const library of [...libraries, ...cLibraries(libraries)]) copy(library, library)

  const modules = "/usr/local/lib/node_modules/npm"
  cpSync(dirname(dirname(realpathSync(npm))), join(files, modules), { recursive: true })
  for (const name of ["npm", "npx"]) symlinkSync(`${modules}/bin/${name}-cli.js`, join(files, "/usr/local/bin", name))

  for (const path of ["etc", "root", "tmp", "home/node"]) mkdirSync(join(files, path), { recursive: true })
  chmodSync(join(files, "tmp"), 0o1777)
  writeFileSync(join(files, "etc/passwd"), "root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n")
  writeFileSync(join(files, "etc/group"), "root:x:0:\nnode:x:1000:\n")
  writeFileSync(join(folder, "Dockerfile"), "FROM scratch\nCOPY files /\nCMD [\"node\"]\n")
}
