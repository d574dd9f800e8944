/** Lets a minute pass for the tasks of a file that is not in use. */
import { DatabaseSync } from "node:sqlite"

export const passAMinute = (file: string): void => {
  const database = new DatabaseSync(file)
  if (database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'skein_tasks'").get() !== undefined) {
    database.exec("UPDATE skein_tasks SET updated_at = updated_at - 60000")
  }
  database.close()
}
