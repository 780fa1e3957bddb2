//! Where a libcupti may be.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The oldest CUDA major version that is served.
pub(super) const OLDEST_MAJOR: u32 = 12;
/// The newest that is looked for in a survey.
pub(super) const NEWEST_MAJOR: u32 = 13;

/// How a libcupti was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CuptiSource {
    /// The process had it mapped already.
    Mapped,
    /// It was named by an option or the environment.
    Given,
    /// A Python package.
    Python,
    /// A CUDA toolkit.
    Toolkit,
    /// The dynamic loader: `LD_LIBRARY_PATH` and the system's folders.
    Loader,
}

/// A libcupti on this machine. Nothing of it has been called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The file.
    pub path: PathBuf,
    /// Where it comes from.
    pub source: CuptiSource,
    /// Its CUDA major version, by its name.
    pub major: u32,
    /// Its release, such as `13.0.85`, by the package or the toolkit it is part of, or by its file's name.
    pub release: Option<String>,
}

/// Files of this process's address space whose name starts with `name`.
pub(super) fn mapped(name: &str) -> Vec<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut paths: Vec<PathBuf> = Vec::new();
    for line in maps.lines() {
        let Some(start) = line.find('/') else { continue };
        let path = Path::new(&line[start..]);
        let file_name = path.file_name().and_then(|file| file.to_str()).unwrap_or_default();
        if file_name.starts_with(name) && !paths.iter().any(|known| known == path) {
            paths.push(path.to_owned());
        }
    }
    paths
}

/// The major version of the libcudart this process has mapped, if it has one.
pub(super) fn mapped_cudart_major() -> Option<u32> {
    mapped("libcudart.so").iter().find_map(|path| major_of(path))
}

/// The newest CUDA major version that the mapped driver serves, by its own version: `libcuda.so.580.159.03`.
pub(super) fn mapped_driver_major() -> Option<u32> {
    mapped("libcuda.so").iter().find_map(|path| driver_major(path.file_name()?.to_str()?))
}

fn driver_major(file: &str) -> Option<u32> {
    /// The first driver that serves CUDA 13.
    const CUDA_13: u32 = 580;
    let branch: u32 = file.strip_prefix("libcuda.so.")?.split_once('.')?.0.parse().ok()?;
    Some(if branch >= CUDA_13 { 13 } else { 12 })
}

/// `libcupti.so.13` and `libcudart.so.13.0.88` are of major version 13; `libcupti.so.2025.3.1` does not say.
fn major_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    let version = name.split_once(".so.")?.1;
    version.split('.').next()?.parse().ok().filter(|&major| major < 1000)
}

/// Folders that may hold a libcupti, from the environment of this process.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Toolkits that the process's libcudart is part of.
    own_toolkits: Vec<PathBuf>,
    site_packages: Vec<PathBuf>,
    toolkits: Vec<PathBuf>,
    loader: Vec<PathBuf>,
}

impl Places {
    /// What the process uses comes first, then what the environment names, then the usual places.
    pub(super) fn of_this_process() -> Self {
        let mut files = mapped("libcudart.so");
        let packages = mapped("").into_iter().filter(|path| package_folder(path).is_some());
        files.extend(packages);
        Self::new(Path::new("/"), &|name| std::env::var_os(name), &files)
    }

    /// `root` stands before the fixed folders; `mapped` are files of the process: its libcudart, and what comes from
    /// Python packages.
    fn new(root: &Path, variable: &dyn Fn(&str) -> Option<OsString>, mapped: &[PathBuf]) -> Self {
        let mut places = Self::default();
        for path in mapped {
            match package_folder(path) {
                Some(folder) => places.site_packages.push(folder.to_owned()),
                None => places.own_toolkits.extend(toolkit_folders(path)),
            }
        }
        let folder = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let split = |name: &str| -> Vec<PathBuf> {
            variable(name)
                .map(|value| std::env::split_paths(&value).filter(|path| path.is_absolute()).collect())
                .unwrap_or_default()
        };

        // Python: an active environment, then where the interpreters on PATH keep their packages.
        places.site_packages.extend(split("PYTHONPATH"));
        let mut prefixes: Vec<PathBuf> = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(folder).collect();
        for bin in split("PATH") {
            if bin.join("python3").exists() {
                prefixes.extend(bin.parent().map(Path::to_owned));
            }
        }
        prefixes.extend(folder("HOME").map(|home| home.join(".local")));
        if let Some(pyenv) = folder("PYENV_ROOT").or_else(|| folder("HOME").map(|home| home.join(".pyenv"))) {
            prefixes.extend(children(&pyenv.join("versions"), ""));
        }
        prefixes.extend([root.join("usr/local"), root.join("usr")]);
        for prefix in prefixes {
            for python in children(&prefix.join("lib"), "python3") {
                places.site_packages.extend([python.join("site-packages"), python.join("dist-packages")]);
            }
        }

        places.toolkits.extend(["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"].into_iter().filter_map(folder));
        places.toolkits.push(root.join("usr/local/cuda"));
        let mut versions = children(&root.join("usr/local"), "cuda-");
        versions.reverse();
        places.toolkits.extend(versions);
        places.toolkits.push(root.join("opt/cuda"));

        places.loader.extend(split("LD_LIBRARY_PATH"));
        places.loader.extend(folder("CONDA_PREFIX").map(|prefix| prefix.join("lib")));
        places.loader.extend([root.join("usr/lib/x86_64-linux-gnu"), root.join("usr/lib64")]);

        for folders in [&mut places.own_toolkits, &mut places.site_packages, &mut places.toolkits, &mut places.loader] {
            let mut seen = Vec::new();
            folders.retain(|folder| {
                folder.is_dir() && !seen.contains(folder) && {
                    seen.push(folder.clone());
                    true
                }
            });
        }
        places
    }

    /// Every folder that is looked at.
    pub(super) fn folders(&self) -> impl Iterator<Item = PathBuf> {
        self.own_toolkits.iter().chain(&self.site_packages).chain(&self.toolkits).chain(&self.loader).cloned()
    }

    /// The libraries for one major version, best first, each file once.
    pub(super) fn candidates(&self, major: u32) -> Vec<Candidate> {
        let name = format!("libcupti.so.{major}");
        let mut found: Vec<Candidate> = Vec::new();
        let mut files: Vec<PathBuf> = Vec::new();
        let mut add = |path: PathBuf, source, release: &dyn Fn() -> Option<String>| {
            let Ok(file) = path.canonicalize() else { return };
            if !files.contains(&file) {
                let release = release().or_else(|| file_release(&file));
                files.push(file);
                found.push(Candidate { path, source, major, release });
            }
        };
        const TOOLKIT: [&str; 4] = ["extras/CUPTI/lib64", "targets/x86_64-linux/lib", "lib64", "lib"];
        for toolkit in &self.own_toolkits {
            for folder in TOOLKIT {
                add(toolkit.join(folder).join(&name), CuptiSource::Toolkit, &|| toolkit_release(toolkit));
            }
        }
        for packages in &self.site_packages {
            // CUDA 13's packages share one folder, those of CUDA 12 have one each.
            for folder in [format!("nvidia/cu{major}/lib"), "nvidia/cuda_cupti/lib".to_owned()] {
                add(packages.join(folder).join(&name), CuptiSource::Python, &|| package_release(packages, major));
            }
        }
        for toolkit in &self.toolkits {
            for folder in TOOLKIT {
                add(toolkit.join(folder).join(&name), CuptiSource::Toolkit, &|| toolkit_release(toolkit));
            }
        }
        for folder in &self.loader {
            add(folder.join(&name), CuptiSource::Loader, &|| None);
        }
        found
    }
}

/// The folder of Python packages that a file is in.
fn package_folder(file: &Path) -> Option<&Path> {
    file.ancestors()
        .find(|folder| folder.file_name().is_some_and(|name| name == "site-packages" || name == "dist-packages"))
}

/// The toolkits whose libcudart a file may be: `X` of `X/lib64/libcudart.so.13` and of
/// `X/targets/x86_64-linux/lib/libcudart.so.13`.
fn toolkit_folders(cudart: &Path) -> impl Iterator<Item = PathBuf> {
    cudart.ancestors().skip(2).take(3).filter(|folder| folder.parent().is_some()).map(Path::to_owned)
}

/// The entries of a folder whose names start with `prefix`, in order.
fn children(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(prefix)))
        .collect();
    paths.sort();
    paths
}

/// The version in the name of the package's `.dist-info` folder.
fn package_release(packages: &Path, major: u32) -> Option<String> {
    let names = [format!("nvidia_cuda_cupti_cu{major}-"), format!("nvidia_cuda_cupti-{major}.")];
    children(packages, "nvidia_cuda_cupti").iter().find_map(|folder| {
        let name = folder.file_name()?.to_str()?.strip_suffix(".dist-info")?;
        names.iter().any(|start| name.starts_with(start)).then(|| name.rsplit_once('-'))?.map(|(_, v)| v.to_owned())
    })
}

/// What a toolkit's `version.json` says of its CUPTI.
fn toolkit_release(toolkit: &Path) -> Option<String> {
    let json = fs::read(toolkit.join("version.json")).ok()?;
    let json: serde_json::Value = serde_json::from_slice(&json).ok()?;
    json.get("cuda_cupti")?.get("version")?.as_str().map(str::to_owned)
}

/// `2025.3.1` of `libcupti.so.2025.3.1`.
fn file_release(file: &Path) -> Option<String> {
    let version = file.file_name()?.to_str()?.strip_prefix("libcupti.so.")?;
    version.contains('.').then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(root: &Path, file: &str) -> PathBuf {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        path
    }

    #[test]
    fn python_comes_before_toolkits_and_those_before_the_loader() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let cu13 = touch(root, "venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcupti.so.13");
        touch(root, "venv/lib/python3.12/site-packages/nvidia_cuda_cupti-13.0.85.dist-info/METADATA");
        let cu12 = touch(root, "venv/lib/python3.12/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12");
        touch(root, "venv/lib/python3.12/site-packages/nvidia_cuda_cupti_cu12-12.9.79.dist-info/METADATA");
        let real = touch(root, "usr/local/cuda-13.1/extras/CUPTI/lib64/libcupti.so.2025.4.1");
        let toolkit = real.with_file_name("libcupti.so.13");
        std::os::unix::fs::symlink(&real, &toolkit).unwrap();
        // The folder `cuda` is the same toolkit again.
        std::os::unix::fs::symlink(root.join("usr/local/cuda-13.1"), root.join("usr/local/cuda")).unwrap();
        let loader = touch(root, "extra/libcupti.so.13");

        let variable = |name: &str| match name {
            "VIRTUAL_ENV" => Some(root.join("venv").into_os_string()),
            "LD_LIBRARY_PATH" => Some(root.join("extra").into_os_string()),
            _ => None,
        };
        let places = Places::new(root, &variable, &[]);
        let found: Vec<_> =
            places.candidates(13).into_iter().map(|c| (c.path.canonicalize().unwrap(), c.source, c.release)).collect();
        assert_eq!(
            found,
            [
                (cu13, CuptiSource::Python, Some("13.0.85".to_owned())),
                (real, CuptiSource::Toolkit, Some("2025.4.1".to_owned())),
                (loader, CuptiSource::Loader, None),
            ]
        );
        let old = places.candidates(12);
        assert_eq!(old.len(), 1);
        assert_eq!((&old[0].path, old[0].release.as_deref()), (&cu12, Some("12.9.79")));
    }

    #[test]
    fn what_the_process_uses_comes_before_what_the_environment_names() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let other = touch(root, "other/lib/python3.12/site-packages/nvidia/cu13/lib/libcupti.so.13");
        let mine = touch(root, "venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcupti.so.13");
        let beside = touch(root, "opt/cuda-13.1/extras/CUPTI/lib64/libcupti.so.13");
        let variable = |name: &str| (name == "VIRTUAL_ENV").then(|| root.join("other").into_os_string());
        let found = |mapped: &[PathBuf]| -> Vec<PathBuf> {
            Places::new(root, &variable, mapped).candidates(13).into_iter().map(|candidate| candidate.path).collect()
        };
        let extension = mine.with_file_name("x.so").parent().unwrap().join("../../../torch/lib/libtorch.so");
        let cudart = root.join("opt/cuda-13.1/targets/x86_64-linux/lib/libcudart.so.13.1.80");
        fs::create_dir_all(cudart.parent().unwrap()).unwrap();
        assert_eq!(found(&[]), [&*other]);
        assert_eq!(found(std::slice::from_ref(&extension)), [&*mine, &*other]);
        assert_eq!(found(&[extension, cudart]), [beside, mine, other]);
    }

    #[test]
    fn the_driver_tells_what_it_serves() {
        assert_eq!(driver_major("libcuda.so.580.159.03"), Some(13));
        assert_eq!(driver_major("libcuda.so.570.86.15"), Some(12));
        assert_eq!(driver_major("libcuda.so.1"), None);
    }

    #[test]
    fn a_toolkit_tells_its_release() {
        let root = tempfile::tempdir().unwrap();
        let toolkit = root.path().join("usr/local/cuda");
        touch(&toolkit, "lib64/libcupti.so.12");
        fs::write(toolkit.join("version.json"), r#"{"cuda_cupti": {"name": "CUPTI", "version": "12.4.127"}}"#).unwrap();
        let found = Places::new(root.path(), &|_| None, &[]).candidates(12);
        assert_eq!(found[0].release.as_deref(), Some("12.4.127"));
    }

    #[test]
    fn names_tell_the_major_version() {
        let of = |name: &str| major_of(Path::new(name));
        assert_eq!(of("/a/libcudart.so.13"), Some(13));
        assert_eq!(of("/a/libcudart.so.12.9.79"), Some(12));
        assert_eq!(of("/a/libcupti.so.2025.3.1"), None);
        assert_eq!(of("/a/libcupti.so"), None);
    }

    #[test]
    fn a_mapped_library_is_found() {
        assert!(!mapped("libc.so").is_empty());
        assert!(mapped("libcupti.so").is_empty());
    }
}
