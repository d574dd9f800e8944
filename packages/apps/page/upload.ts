/** The page of `Upload`: picks files, and sends them in parts. */
import type { PageUpload } from "../src/shared/pageQuestion.ts"
import { byId, call, element, finish, messageOf, onTeardown, say, start, visible } from "./ready.ts"

const form = byId<HTMLFormElement>("form")
const fields = byId<HTMLFieldSetElement>("fields")
const input = byId<HTMLInputElement>("files")
const drop = byId("drop")
const progress = byId<HTMLProgressElement>("progress")
const upload = byId<HTMLButtonElement>("upload")
const cancel = byId<HTMLButtonElement>("cancel")

const sizeOf = (bytes: number): string =>
  bytes < 1_024
    ? `${bytes} bytes`
    : bytes < 1_048_576
    ? `${Math.round(bytes / 1_024)} KB`
    : `${Math.round(bytes / 104_857.6) / 10} MB`

const plural = (count: number): string => count === 1 ? "1 file" : `${count} files`

const total = (files: ReadonlyArray<File>): number => files.reduce((sum, { size }) => sum + size, 0)

/** The bytes of a part as base64. */
const base64 = (part: Blob): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result).replace(/^.*,/, ""))
    reader.onerror = () => reject(new Error("The file cannot be read. It may have changed."))
    reader.readAsDataURL(part)
  })

/** Returns why the server would refuse the files, for the user. */
const problemOf = (files: ReadonlyArray<File>, bounds: PageUpload): string => {
  const large = files.find(({ size }) => size > bounds.maxFileBytes)
  if (files.length > bounds.maxFiles) return `Choose at most ${plural(bounds.maxFiles)}.`
  if (large !== undefined) return `${large.name} is larger than ${sizeOf(bounds.maxFileBytes)}.`
  return total(files) > bounds.maxTotalBytes
    ? `The files are larger than ${sizeOf(bounds.maxTotalBytes)} together.`
    : ""
}

/** Sends the files. */
const transfer = async (question: PageUpload, files: ReadonlyArray<File>, signal: AbortSignal): Promise<void> => {
  const partBytes = Math.max(1, question.maxPartBytes)
  const declared = files.map(({ name, size, type }) => ({ name, type, size }))
  await call(question, { step: "begin", files: declared }, signal)
  progress.max = Math.max(1, total(files))
  for (const [index, file] of files.entries()) {
    for (let at = 0; at < file.size; at += partBytes) {
      const part = file.slice(at, at + partBytes)
      await call(question, { step: "part", file: index, at, data: await base64(part) }, signal)
      progress.value += part.size
    }
  }
}

start<PageUpload>((question) => {
  let files: ReadonlyArray<File> = []
  let sending: AbortController | undefined
  const several = question.maxFiles > 1
  const setFiles = (next: ReadonlyArray<File>): void => {
    files = next
    byId("list").replaceChildren(...files.map((file) =>
      element(
        "li",
        {},
        element("span", { className: "name text", dir: "auto" }, visible(file.name)),
        element("span", { className: "second" }, sizeOf(file.size)),
        element("button", {
          type: "button",
          ariaLabel: `Remove ${visible(file.name)}`,
          onclick: () => {
            setFiles(files.filter((other) => other !== file))
            input.focus()
          }
        }, "Remove")
      )
    ))
    const problem = problemOf(files, question)
    say(problem, problem !== "")
    upload.disabled = files.length === 0 || problem !== ""
  }
  const add = (list: FileList | null | undefined): void => {
    if (sending !== undefined || list === null || list === undefined || list.length === 0) return
    setFiles(several ? [...files, ...list] : [list[0]!])
  }
  const setState = (isSending: boolean): void => {
    fields.disabled = upload.disabled = isSending
    cancel.hidden = progress.hidden = !isSending
    progress.value = 0
    if (!isSending) sending = undefined
  }

  const together = Math.min(question.maxTotalBytes, question.maxFiles * question.maxFileBytes)

  upload.textContent = visible(question.upload)
  input.accept = question.accept.join(",")
  input.multiple = several
  byId("pick").textContent = several ? "Choose files" : "Choose a file"
  byId("limits").textContent = [
    several ? `or drop them here. Up to ${plural(question.maxFiles)}` : "or drop it here. One file",
    `of ${sizeOf(question.maxFileBytes)}${several ? ` each, ${sizeOf(together)} together` : ""}`,
    ...(question.accept.length === 0 ? [] : [`(${question.accept.join(", ")})`])
  ].join(" ")
  form.hidden = false

  input.onchange = () => {
    add(input.files)
    // The same file can be chosen again after it was removed.
    input.value = ""
  }
  drop.ondragover = (event) => {
    event.preventDefault()
    drop.classList.add("over")
  }
  drop.ondragleave = () => drop.classList.remove("over")
  drop.ondrop = (event) => {
    event.preventDefault()
    drop.classList.remove("over")
    add(event.dataTransfer?.files)
  }
  const send = async (signal: AbortSignal): Promise<void> => {
    setState(true)
    cancel.focus()
    say(`Sending ${plural(files.length)} …`)
    try {
      await transfer(question, files, signal)
    } catch (error) {
      cancel.hidden = true
      say(messageOf(error), true)
      // Frees what has arrived, before other files can be sent. The question stays open for them.
      await call(question, { step: "cancel" }).catch(() => {})
      setState(false)
      upload.focus()
      return
    }
    cancel.hidden = true
    const names = files.map(({ name, size }) => `"${visible(name)}" (${sizeOf(size)})`).join(", ")
    const [outcome, isError] = await call(question, { step: "end" }).then(
      (text) => [text || "The files were sent.", false] as const,
      (error: unknown) => [messageOf(error), true] as const
    )
    setState(false)
    fields.disabled = byId("drop").hidden = byId("actions").hidden = true
    await finish(`My answer to "${question.title}": ${names}`, outcome, isError)
  }

  let running: Promise<void> | undefined
  cancel.onclick = () => sending?.abort(new Error("The upload was cancelled."))
  onTeardown(async () => {
    sending?.abort(new Error("The page is closed."))
    await running
  })
  form.onsubmit = (event) => {
    event.preventDefault()
    if (sending !== undefined || files.length === 0) return
    sending = new AbortController()
    running = send(sending.signal)
  }
})
