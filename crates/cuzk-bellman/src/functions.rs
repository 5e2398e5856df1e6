//! What both libraries' modules offer, written once: their traits have equal names and meanings.

/// The functions over a library's circuits, and the type that speaks its trait.
///
/// The calling module has in scope the library's `Circuit`, `ConstraintSystem`, `Index`,
/// `LinearCombination`, `SynthesisError` and `Scalar`, its `Variable` as `LibraryVariable`, and the
/// functions `value` and `entries`. What the trait of one library has beyond the other's follows the
/// parameter's name.
macro_rules! circuit_functions {
    ($S:ident { $($more:item)* }) => {
        /// Records a circuit's constraint system. As in key generation, no value is asked for: a circuit
        /// without a witness is what it is made for.
        ///
        /// # Errors
        /// [`Error::Synthesis`]; [`Error::TooLarge`] beyond 2^31 variables of a kind or 2^32 entries of a
        /// matrix.
        pub fn record(circuit: impl Circuit<Scalar>) -> Result<Shape, Error> {
            let mut system = System(Recorder::new());
            circuit.synthesize(&mut system).map_err(synthesis_error)?;
            Shape::new(system.0)
        }

        /// Computes a circuit's witness, the circuit held against the shape: see [`Shape`].
        ///
        /// # Errors
        /// [`Error::Count`] or [`Error::Constraint`] when the circuit is not of that shape;
        /// [`Error::Synthesis`].
        pub fn witness(shape: &Shape, circuit: impl Circuit<Scalar>) -> Result<Witness, Error> {
            if shape.is_to_be_compared() {
                let mut system = System(Comparison::new(shape));
                circuit.synthesize(&mut system).map_err(synthesis_error)?;
                let witness = system.0.finish()?;
                shape.set_compared();
                return Ok(witness);
            }
            let mut system = System(Assignment::of(shape));
            circuit.synthesize(&mut system).map_err(synthesis_error)?;
            system.0.finish(shape)
        }

        /// Proves a circuit of a recorded shape.
        ///
        /// # Errors
        /// As [`witness`], and what the prover says: the witness violates a constraint, key and circuit
        /// do not belong together.
        pub fn prove(
            backend: &(impl Backend + ?Sized),
            shape: &Shape,
            circuit: impl Circuit<Scalar>,
            options: &ProveOptions,
        ) -> Result<Proved, Error> {
            prove_all(backend, shape, [circuit], options).map(single)
        }

        /// Proves several circuits of one shape with one key, and gives the proofs in their order:
        /// [`to_bytes`](crate::to_bytes) puts them together. Each is synthesised when its turn comes.
        ///
        /// # Errors
        /// As [`prove`], for the first circuit that fails.
        pub fn prove_all<C: Circuit<Scalar>>(
            backend: &(impl Backend + ?Sized),
            shape: &Shape,
            circuits: impl IntoIterator<Item = C>,
            options: &ProveOptions,
        ) -> Result<Vec<Proved>, Error> {
            let mut jobs = circuits.into_iter().map(|circuit| {
                Ok(Job {
                    witness: witness(shape, circuit)?,
                    options: options.clone(),
                })
            });
            backend.prove_all(shape.r1cs(), &mut jobs)
        }

        fn synthesis_error(error: SynthesisError) -> Error {
            Error::Synthesis {
                what: error.to_string(),
            }
        }

        /// Hands everything on.
        struct System<S>(S);

        impl<$S: Sink> System<$S> {
            fn value(
                value: impl FnOnce() -> Result<Scalar, SynthesisError>,
            ) -> Result<Option<cuzk_field::Scalar>, SynthesisError> {
                if $S::VALUES {
                    value().map(|value| Some(scalar(&value)))
                } else {
                    Ok(None)
                }
            }
        }

        impl<$S: Sink> ConstraintSystem<Scalar> for System<$S> {
            type Root = Self;

            fn alloc<F, A, AR>(&mut self, _: A, value: F) -> Result<LibraryVariable, SynthesisError>
            where
                F: FnOnce() -> Result<Scalar, SynthesisError>,
                A: FnOnce() -> AR,
                AR: Into<String>,
            {
                let index = self.0.aux(Self::value(value)?);
                Ok(LibraryVariable::new_unchecked(Index::Aux(index)))
            }

            fn alloc_input<F, A, AR>(
                &mut self,
                _: A,
                value: F,
            ) -> Result<LibraryVariable, SynthesisError>
            where
                F: FnOnce() -> Result<Scalar, SynthesisError>,
                A: FnOnce() -> AR,
                AR: Into<String>,
            {
                let index = self.0.input(Self::value(value)?);
                Ok(LibraryVariable::new_unchecked(Index::Input(index)))
            }

            fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, a: LA, b: LB, c: LC)
            where
                A: FnOnce() -> AR,
                AR: Into<String>,
                LA: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
                LB: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
                LC: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
            {
                if $S::COMBINATIONS {
                    let combinations = [
                        a(LinearCombination::zero()),
                        b(LinearCombination::zero()),
                        c(LinearCombination::zero()),
                    ];
                    for (matrix, combination) in combinations.iter().enumerate() {
                        for (index, coefficient) in entries(combination) {
                            let variable = match index {
                                Index::Input(index) => Variable::Input(index),
                                Index::Aux(index) => Variable::Aux(index),
                            };
                            self.0.entry(matrix, variable, scalar(coefficient));
                        }
                    }
                }
                self.0.end_constraint();
            }

            fn push_namespace<NR, N>(&mut self, _: N)
            where
                NR: Into<String>,
                N: FnOnce() -> NR,
            {
            }

            fn pop_namespace(&mut self) {}

            fn get_root(&mut self) -> &mut Self {
                self
            }

            $($more)*
        }
    };
}

pub(crate) use circuit_functions;
